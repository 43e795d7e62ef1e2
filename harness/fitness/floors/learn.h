// Floors that are learned: from runs of healthy machines of one kind, the limit that the run of a new machine of that
// kind misses as rarely as asked.
#pragma once

#include "harness/core/error.h"
#include "harness/record/metric.h"
#include "harness/runs/run_set.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {

// What to do if machines, or with same_machine runs in a case, stand apart from the others.
enum class Outliers { refuse, leave_out, keep };
constexpr auto words(Outliers) { return std::to_array<std::string_view>({"refuse", "leave-out", "keep"}); }

struct LearnOptions {
  double false_fail = 1e-3;   // the probability that one run of a healthy machine misses any floor; in (0, 0.5]
  bool same_machine = false;  // all runs are of one machine, and the floors are for it alone
  Outliers outliers = Outliers::refuse;
  bool disturbed = false;  // records of runs that lost CPU time to others count too
};

// One case and its figure. Losses are of speed: a time that is 1.25 times as long is a loss of 20 %.
struct LearnedFloor {
  const Entry* like = nullptr;  // the newest of its records
  std::string metric;
  std::string unit;
  Better better = Better::higher;
  std::size_t machines = 0;
  std::size_t runs = 0;
  double median = 0;              // in `unit`; of the machines' medians
  std::optional<double> between;  // relative standard deviation between machines; without `within`, of single runs
  std::optional<double> within;   // between runs of one machine
  std::optional<double> limit;    // in `unit`; absent: there is no floor, and `reason` says why
  std::optional<double> loss;     // the smallest that is found in 90 % of cases, as a fraction
  std::string reason;
};

struct MachineApart {
  std::string machine;
  std::string key;        // of the case in which it is furthest from the median machine
  double difference = 0;  // -0.18: 18 % slower
};

// Points into the RunSet, which must outlive it.
struct LearnedFloors {
  LearnOptions options;
  std::string hardware;         // of the machines, in words; may be empty
  std::set<std::string> names;  // of the processors or GPUs that the figures are of: the floors are for these only
  std::string measured;         // "2026-01-03 to 2026-01-09"; empty if unknown
  std::vector<std::string> machines;  // whose figures count, by name
  std::size_t runs = 0;               // with figures that count
  std::size_t tried = 0;              // cases with enough machines (or runs of the one machine)
  double floor_rate = 0;  // the part of options.false_fail that a floor may take: an equal one for each case tried
  std::vector<LearnedFloor> cases;  // by key
  std::vector<MachineApart> apart;  // the slowest first
  std::vector<std::string> notes;   // what was left out, and why
  std::string nothing;              // why no floor at all could be learned; else empty

  std::size_t floors() const;
  // failed if machines stand apart and nobody said what to do; no_data if there is no floor.
  ExitCode code() const;
};

// Throws UsageError that names what differs, unless the runs compare among each other: hardware, protocol, conditions.
LearnedFloors learn(const RunSet& runs, const LearnOptions& options);

// A floors file; the same for the same runs in any order.
Json floors_of(const LearnedFloors& learned);
// Whether a floors file holds nothing but learned floors, so that learning again may replace it.
bool is_learned(const std::filesystem::path& file);

// "12 machines, 36 runs (AMD Zen 4, 2 cores; 2026-01-03 to 2026-01-09)": what was learned from.
std::string basis_text(const LearnedFloors& learned, std::size_t machines, std::size_t runs);

}  // namespace assay::fitness
