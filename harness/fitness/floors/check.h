// What runs measured against what a machine must reach.
#pragma once

#include "harness/fitness/fitness.h"
#include "harness/fitness/floors/floors.h"
#include "harness/runs/run_set.h"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::fitness {

// How one record fares under one floor, from worst to best.
enum class Outcome {
  fail,          // beyond the limit
  inconclusive,  // the 95 % interval contains the limit, or the fleet is too small
  unusable,      // skipped, failed, broken, not comparable, or without a known figure
  pass,
  refused,  // ignored: its protocol or hardware is not what the floor asks for, or it lacks the metric
};
constexpr auto words(Outcome) {
  return std::to_array<std::string_view>({"fail", "inconclusive", "unusable", "pass", "refused"});
}

struct Judgement {
  Entry entry;
  Outcome outcome = Outcome::unusable;
  std::string reason;             // empty if it passed with an interval
  std::string culprit;            // "rank 3, host b, NVIDIA H200": where the figure comes from
  std::string pointer;            // of the figure in the record: /metrics/0/value
  std::optional<double> value;    // in the floor's unit
  std::optional<Interval> range;  // 95 %
  std::optional<double> limit;    // in the floor's unit; for a relative floor, computed from the fleet
  std::optional<double> median;   // of the fleet
  std::size_t members = 0;        // of the fleet
};

// Words of `verdict`, and of the whole in documents, where somebody has to look at what is unknown.
inline constexpr FitnessWords floor_words = {"pass", "not judged", "inconclusive", "fail"};
inline constexpr FitnessWords verdict_words = {"pass", "inconclusive", "inconclusive", "fail"};

struct FloorResult {
  const Floor* floor = nullptr;
  Fitness verdict = Fitness::unknown;
  std::string reason;              // why it is not simply a pass
  std::vector<Judgement> records;  // worst first
  std::size_t of_other_unit = 0;   // records that the key matches, passed over: their metric has another unit
  std::size_t of_key = 0;          // records that the key matches, whatever else the floor asks for
  std::string unmeasured;          // why no record was held against the limit; empty if one was
};

// A figure that several members of a fleet have, and what can be seen in it.
struct FleetPower {
  std::string key, metric;             // both empty: all of a host's cases together
  std::size_t members = 0;             // hosts, or GPUs of all hosts
  std::optional<double> limit, found;  // losses: beyond which one fails, and that is found nine times in ten
};

// A host's loss in all cases together, against the median of the hosts.
struct HostLoss {
  double loss = 0, limit = 0;  // fractions
  std::size_t cases = 0;
  std::size_t slower_group = 0;  // hosts of the slower one of two groups of which it is; 0: there are no such groups
};

// Points into the floors and the runs, which must outlive it.
struct CheckResult {
  const Floors* floors = nullptr;
  const RunSet* runs = nullptr;
  std::vector<FloorResult> results;  // one per floor, in the file's order
  std::vector<std::string> notes;    // what was left out: unreadable lines, copies, injected records
  // With CheckRules::false_fails only.
  std::size_t comparisons = 0;
  std::vector<FleetPower> power = {};
  std::map<std::string, HostLoss> together = {};  // by host

  std::size_t count(Fitness verdict) const;
  // fail if a floor failed, unsure if one is, unknown if none was judged: also if no case finished.
  Fitness fitness() const;
  // Judgements that measuring again could turn, since the limit lies in the interval, each with its floor.
  std::vector<std::pair<const Floor*, const Judgement*>> undecided() const;
};

// Rules that have changed since packs were first written: a pack is judged by those of its time.
struct CheckRules {
  bool whole_runs = true;  // a required floor is inconclusive while a run has not measured all its cases
  // Relative floors are margins, beyond which a loss fails only if equal hosts with the spread of these would make any
  // loss fail with at most this probability, in all comparisons of the check; 0: they are limits.
  double false_fails = 0;
};

// `families`: those that this build knows, to suggest the nearest name if a pattern matches nothing.
// Throws UsageError if a floor's unit is that of no record that it matches, or neither they nor the table know its
// metric.
// Floors of other hardware are refused by require_hardware_of() and not here: a pack keeps what was judged once.
CheckResult check(const RunSet& runs, const Floors& floors, std::span<const std::string> families,
                  const CheckRules& rules = {});

// require_hardware(), of the records in these runs.
void require_hardware_of(const RunSet& runs, const Floors& floors);

}  // namespace assay::fitness
