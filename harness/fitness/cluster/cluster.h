// Acceptance of a cluster: its table, host by check, and the judgement of each stage from what the stage left on disk.
#pragma once

#include "harness/core/error.h"
#include "harness/fitness/cluster/audits.h"
#include "harness/fitness/cluster/evidence.h"
#include "harness/fitness/floors/check.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

// A part to look at, or to replace.
struct FailedPart {
  std::string part;    // gpu, nvlink, port, cable, pcie, memory, disk, host, pair
  std::string device;  // as its host calls it: PCI address, UUID, "mlx5_3"; "b - c" for a pair; empty: not known which
  bool operator==(const FailedPart&) const = default;
};

// Words of states: a check that is unknown was not run.
inline constexpr FitnessWords check_words = {"pass", "not_run", "inconclusive", "fail"};

// One check of one host.
struct HostCheck {
  Fitness state = Fitness::unknown;
  bool required = false;  // by the level: without a result the host has not passed
  // The figure nearest to its limit, or farthest beyond it, in base units; absent: no figure decided.
  std::string of;  // "gemm/.../duration=burst throughput"
  std::string unit;
  std::optional<double> figure;
  std::optional<double> floor;
  bool at_most = false;
  std::string culprit;                   // "rank 3, host b, NVIDIA H200": where the figure comes from, of several
  std::vector<std::string> evidence;     // what it rests on, a line each
  std::vector<MissedFloor> missed = {};  // figures beyond their floors
  std::set<std::string> broken = {};     // keys of cases that gave a wrong result, or none

  std::vector<FailedPart> culprits = {};  // of what failed, or may have

  // Keys of cases that are too slow or too close to say, where nothing worse was found: measure them once more.
  std::set<std::string> repeat = {};

  void blame(std::string part, std::string device = "");  // each once
  // Takes the worse of both states.
  void note(Fitness found, std::string line);
};
using HostChecks = std::map<std::string, HostCheck>;

// The checks in the order of the table.
inline constexpr std::string_view accept_checks[] = {"audit", "host", "pairs", "collectives", "training"};

struct AcceptedHost {
  std::string host;
  std::map<std::string, HostCheck, std::less<>> checks = {};  // a check without an entry was not run
  std::vector<AuditedGpu> gpus = {};
  std::vector<std::string> problems = {};    // ids of the audit's faults
  std::vector<std::string> xids = {};        // "XID 79 of 0000:1b:00.0 at 2026-11-20T03:12:44Z"
  std::vector<VendorCommand> commands = {};  // to run next; for a host that failed
  std::vector<std::string> before = {};      // in what it failed before it was accepted again, a line each
  std::string evidence_file = {};            // below the folder; empty: none

  // fail if a check failed, unsure if one is or a required one was not run, pass if one passed, else unknown.
  Fitness state() const;
};

// "GPU 5 (0000:5d:00.0)", "port mlx5_3", "pair b - c"; the index is that of the host's GPUs.
std::string text_of(const FailedPart& culprit, const AcceptedHost& host);
// Those of the checks that failed, else of those that are inconclusive.
std::vector<FailedPart> culprits_of(const AcceptedHost& host);
// Returns the checks that suspect a part without being sure, by the part's text.
std::map<std::string, std::vector<std::string>> suspicions_of(const AcceptedHost& host);
// A part that several checks suspect fails the last of them.
void escalate(AcceptedHost& host);
// Returns the devices that commands are for, by part; "" where it is not known which.
std::map<VendorPart, std::set<std::string>> vendor_parts(const AcceptedHost& host, bool has_gpus);

// A floor that no stage held a figure against.
struct UnmeasuredFloor {
  Floor floor;
  std::string file, name;  // of its file
  std::string reason;      // "matched no record; the nearest key is ..."
  int nearness = 0;  // of the stage whose reason it is: 0 other keys, 1 records of its key, 2 refused or unusable ones
};
// "not measured at this level: 2 floors of h100-sxm, 1 of them required (collective/op=all_reduce/* busbw on 32 ranks,
// ...)", a line for each file.
std::vector<std::string> unmeasured_lines(const std::vector<UnmeasuredFloor>& floors);

// Which floors the stages have not held a figure against yet.
class UnmeasuredFloors {
 public:
  // Floors of a file to be measured; of those that a level brings along only the required ones count.
  void expect(const Floors& floors, bool only_required);
  void add(const CheckResult& result);  // what a stage measured
  const std::vector<UnmeasuredFloor>& left() const { return left_; }

 private:
  std::vector<UnmeasuredFloor> left_;
};

// The probability that an acceptance of equal hosts fails one of them for being slower than the others.
inline constexpr double acceptance_false_fails = 0.01;

// The losses that comparing the hosts can find.
struct ComparedHosts {
  std::size_t comparisons = 0;
  std::vector<FleetPower> cases = {};
};
// "1,984 comparisons of hosts, ...: 9 of 10 losses of 12 % to 15 % of one case are found, and of 2.4 % of all cases";
// empty if none were compared.
std::string power_text(const ComparedHosts& compared);

// A figure of all hosts together, whether it was judged or not.
struct WorldFigure {
  std::string check, key, metric, unit;
  double value = 0;

  static void members(auto& self, auto& io) {
    io("check", self.check), io("key", self.key), io("metric", self.metric), io("value", self.value);
    io("unit", self.unit);
  }
};

// A leaf switch below which the links of a rail are slow, or a rail that is slow where all hosts use it at once, which
// is no host's fault.
struct SlowSwitch {
  std::string leaf;                 // empty: some switch of the rail
  std::optional<std::size_t> rail;  // absent: there are no rails
  std::vector<std::string> hosts;   // below it
  std::string key;                  // of the case
  double share = 1;                 // of the usual speed
  std::size_t slow = 0, links = 0;  // how many of its links are slow; of a whole rail none

  // "leaf1, rail 6: 70 % of the usual speed on h31, h32 (12 of 12 links to other switches; KEY): the switch, ..."
  std::string text() const;
  static void members(auto& self, auto& io) {
    io.null_if_empty("leaf", self.leaf), io("rail", self.rail), io("hosts", self.hosts), io("key", self.key);
    io("share", self.share), io("slow", self.slow), io("links", self.links);
  }
};
// Each leaf and rail once, with its least share.
void add_worst(std::vector<SlowSwitch>& all, const SlowSwitch& one);

// What a host's port reaches on a rail, over its links to others.
struct RailPort {
  std::string host;
  std::size_t rail = 0;
  std::string gpu = {};                           // that sends by it: PCI address, else UUID; empty: a CPU's rank
  std::string nic = {};                           // nearest to the GPU, "mlx5_0:1"; empty: none, or unknown
  std::optional<double> send = {}, receive = {};  // bytes a second, of its median link
  double floor = 0;                               // below it a link is slow
  std::size_t partners = 0;
  std::string state = {};  // a word of check_words; "switch": slow, as are the others below its switch

  static void members(auto& self, auto& io) {
    io("host", self.host), io("rail", self.rail), io.null_if_empty("nic", self.nic);
    io.null_if_empty("gpu", self.gpu), io("send", self.send), io("receive", self.receive);
    io("floor", self.floor), io("partners", self.partners), io("state", self.state);
  }
};

// What the ranks of a rail reach in a collective of their own, while the other rails make theirs.
struct RailGroup {
  std::string key;
  std::size_t rail = 0;
  std::vector<std::string> hosts = {};
  double busbw = 0, share = 1;  // the latter: of the usual rail
  bool slow = false;
  std::vector<std::string> explained_by = {};  // hosts and leaf switches with slow links on it

  static void members(auto& self, auto& io) {
    io("key", self.key), io("rail", self.rail), io("hosts", self.hosts), io("busbw", self.busbw);
    io("share", self.share), io("slow", self.slow), io("explained_by", self.explained_by);
  }
};

struct RailFigures {
  std::vector<RailPort> ports;    // of the largest messages; by host
  std::vector<RailGroup> groups;  // by case
};

struct Acceptance {
  std::string level;
  std::string started;
  double seconds = 0;
  std::vector<AcceptedHost> hosts;
  std::vector<std::string> notes = {};  // "hosts are one machine: a drill, not an acceptance"
  std::vector<UnmeasuredFloor> not_measured = {};
  ComparedHosts compared = {};
  std::vector<WorldFigure> figures = {};
  std::vector<SlowSwitch> switches = {};
  std::vector<Record> links = {};  // bandwidths between hosts, of the largest messages
  RailFigures rails = {};
  bool finished = true;
  std::string hardware = {};  // of most hosts: "8 x NVIDIA H100 80GB HBM3, 8 ports of 400 Gb/s"; empty: not known
  std::string floors = {};    // name of the file; empty: none

  // fail if a host failed or a switch is slow; unknown or worse unless each has passed a check, every required floor
  // was measured, and all is finished.
  Fitness fitness() const;
};

// The audit (`assay audit --hostfile`): fails for a fault, an unreachable host, fewer GPUs than most hosts have,
// and another driver, firmware, kernel, BIOS or NCCL than most. Other facts that differ are mentioned. Fills gpus and
// xids of `hosts`.
void judge_audit(const AuditedFleet& audit, std::vector<AcceptedHost>& hosts);

using Leaves = std::map<std::string, std::string>;  // leaf switches by host

struct StageFloors {
  const Floors* user = nullptr;    // --floors
  const Floors* fleet = nullptr;   // of hosts against their median; applied from three hosts on
  double pair_share = 0.6;         // of the median pair: a host or link below it is slow
  const Leaves* leaves = nullptr;  // as far as known
  const std::map<std::string, double>* port_rates = nullptr;  // bytes a second by host, as far as known
  std::span<const std::string> families = {};                 // that this build knows
  UnmeasuredFloors* unmeasured = nullptr;                     // told what is measured
  ComparedHosts* power = nullptr;                             // told what comparing hosts can find
  std::string* unjudged = nullptr;                            // told which copies between GPUs nothing judged
};

// A plan run on every host separately, then once more on those of its hosts that were slow: a figure counts as slow
// only if it was so each time. `hosts` took part in the first run. Throws UsageError as check() does.
HostChecks judge_each_host(std::vector<RunData> runs, const std::vector<std::string>& hosts, const StageFloors& floors);

// Ranks of a host whose GPUs did not answer until the limit of cases of all its GPUs, and these cases.
struct HeldUp {
  std::set<int> ranks;
  std::set<std::string> keys;
};
// Returns, by host, what to measure once more on its other GPUs, which have shown nothing. Hosts without others are
// left out.
std::map<std::string, HeldUp> gpus_that_held_up(const RunData& run, const std::vector<std::string>& hosts);

struct WorldChecks {
  HostChecks checks;
  bool repeat = false;  // a host was lost or gave wrong results, so what the others can do is not known yet
  // Hosts and keys of slow pairs and groups, to measure once more, with as many hosts at least, before anybody is
  // blamed.
  std::set<std::string> slow = {}, slow_keys = {};
  std::size_t hosts_again = 0;
  std::vector<SlowSwitch> switches = {};
  std::string note = {};                  // what could not be judged
  std::vector<WorldFigure> figures = {};  // `check` is left to the caller
  std::vector<Record> links = {};         // as in Acceptance
  RailFigures rails = {};

  void add_note(const std::string& text);  // each once
};
// A plan run by all hosts together: wrong results, lost hosts, stragglers, in matrices of pairs hosts and links that
// are slow, and ports that did not carry their rail. Throws UsageError as check() does.
WorldChecks judge_world(RunData run, const std::vector<std::string>& hosts, const StageFloors& floors);

// "2 of 14 cases skipped everywhere: KEY (reason)"; empty if every case ran somewhere.
std::string skips_text(const RunData& run);

// The host of a record of one host, by its name among `hosts`: a run on a single host may call it otherwise.
std::string host_of(const Record& record, const std::vector<std::string>& hosts);

// Why this is a drill and no acceptance, by what the runs say about themselves; empty if it is an acceptance.
std::vector<std::string> why_drill(const std::vector<RunData>& runs);

}  // namespace assay::fitness
