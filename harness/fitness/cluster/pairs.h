// Pairs of hosts: who is slow in a matrix of their figures.
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "harness/fitness/cluster/slow_links.h"
#include "harness/runs/run_set.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace assay::fitness {

inline constexpr std::size_t min_fleet = 3;  // hosts that have a median

// Notes a state; what it rests on only while the check has few lines of evidence.
void add_line(HostCheck& check, Fitness state, const std::string& line);

inline constexpr double slow_latency = 3;  // times the median's: small messages differ more than large ones

// Who is to blame for slow links of a record with figures of pairs (slow_links.h), on each rail if it has them: a host
// or a port whose links are slow fails; a way or a link that is slow by itself may be the fault of either end. If more
// than a third of the hosts were to fail, about as slow as each other, they may be of another kind, and nobody is sure.
// A slow leaf switch is noted and no host's fault. A link is slow below the share of the usual one
// (StageFloors::pair_share), on GPUs already below nine tenths. Hosts and key are noted as to be measured again.
// Returns who explains the links, in the order of the matrix's hosts; absent if nothing can be said.
std::optional<SlowLinks> judge_links(const Record& record, const StageFloors& floors, WorldChecks& world);

// Pairs of hosts that were measured again count with the better figure. Pairs of a suspect with hosts that took no part
// then count with its median of that time, with those that are no suspects: if that is better, all of them were slow
// for a while. The metrics of slowest pairs follow. Groups: keep_better_groups().
void keep_better_pairs(RunData& first, const RunData& again, const std::set<std::string>& suspects);
// Whom to measure again: the suspects, and as many others, at least three, `least` hosts in all if there are so many,
// from everywhere in the list: hosts of one switch stand beside each other.
std::vector<std::string> with_partners(const std::set<std::string>& suspects, const std::vector<std::string>& hosts,
                                       std::size_t least = 0);

// The fewest hosts that explain the pairs beyond a floor's limit, each with those that it is slow with: those that
// explain_slow_links() names, then, while such pairs are left, the host with the most of them. Both hosts of a pair
// that stands alone. If no pair is beyond the limit, the hosts of the worst one. Empty if the floor is not about the
// figures of the matrix.
// Slow leaf switches are noted, and no host's fault.
std::map<std::string, std::set<std::string>> slow_hosts(const Record& record, const Floor& floor, double limit,
                                                        const Leaves* leaves, std::vector<SlowSwitch>& switches);
// Bytes a second that each GPU of a host can send by its RDMA port, from the rates in its audit. A host is left out if
// it has no GPU or no such port, or ports of several rates none of which is that of as many ports as GPUs.
std::map<std::string, double> port_rates(const AuditedFleet& audit);
// Large messages between GPUs that no floor of the user's is about fail below 0.9 of the slower port's rate, also where
// all are equally slow: the fewest hosts that explain the links below it. Where a rate is not known, that is noted.
void judge_port_rates(const Record& record, const StageFloors& floors, WorldChecks& world);

// Fails the host of a port that did not carry its rail (PortTraffic::too_little()), and notes where nothing tells which
// port did (flag::unproven_rails). The error counters of ports that grew meanwhile are remarks on their host.
void judge_ports(const RunSet& runs, WorldChecks& world);

// "slow with 3 of 63 hosts: b, c, d".
std::string slow_with_text(const Record& record, const std::set<std::string>& others);

// The bandwidths between hosts, of the largest messages: of pairs, and of rails.
std::vector<Record> widest_matrices(const RunSet& runs);

}  // namespace assay::fitness
