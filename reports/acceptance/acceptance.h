// Acceptance: what runs measured against what a machine must reach (floors, from a file).
#pragma once

#include "harness/core/error.h"
#include "harness/runs/run_set.h"
#include "reports/acceptance/selection.h"
#include "reports/model/document.h"
#include "reports/model/test_suite.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

enum class Bound { at_least, at_most };

// One limit, on one metric. Every matching record is judged; the worst decides.
struct Floor : Selection {
  Bound bound = Bound::at_least;
  double limit = 0;       // in `unit`; for a relative floor, a fraction of the fleet's median
  bool relative = false;  // to the median of the hosts (or GPUs) that ran the same case
  int min_members = 3;    // a smaller fleet is not judged
  bool required = false;  // fails if there is no usable record
  std::string pointer;    // into the file
  // Patterns, of its file: records of hardware with another name are refused. Empty: any.
  std::vector<std::string> hardware = {};
};

struct Floors {
  std::string file;  // for messages
  std::string name;  // of the file, without folder and .json
  std::string description;
  std::vector<Floor> floors;
};

inline constexpr std::uintmax_t max_floors_bytes = std::uintmax_t{64} << 20;  // as of any JSON file

// Reads a floors file (comments allowed). Throws UsageError that lists every error in it: unknown members with the
// nearest name, wrong types, both or neither of at_least and at_most, a unit that does not fit the metric, no source,
// negative limits, an empty list, duplicate floors.
Floors load_floors(const std::filesystem::path& path);
// The same from a file's text; `path` is only its name.
Floors parse_floors(std::string_view text, const std::filesystem::path& path);

// How one record fares under one floor, from worst to best.
enum class Outcome {
  fail,          // beyond the limit
  inconclusive,  // the 95 % interval contains the limit, or the fleet is too small
  unusable,      // skipped, failed, broken, not comparable, or without a known figure
  pass,
  refused,  // ignored: its protocol or hardware is not what the floor asks for, or it lacks the metric
};
std::string_view name_of(Outcome outcome);

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

enum class Verdict { pass, fail, inconclusive, not_judged };
std::string_view name_of(Verdict verdict);

struct FloorResult {
  const Floor* floor = nullptr;
  Verdict verdict = Verdict::not_judged;
  std::string reason;              // why it is not simply a pass
  std::vector<Judgement> records;  // worst first
  std::size_t of_other_unit = 0;   // records that the key matches, passed over: their metric has another unit
  std::size_t of_key = 0;          // records that the key matches, whatever else the floor asks for
  std::string unmeasured;          // why no record was held against the limit; empty if one was
};

// Points into the floors and the runs, which must outlive it.
struct CheckResult {
  const Floors* floors = nullptr;
  const RunSet* runs = nullptr;
  std::vector<FloorResult> results;  // one per floor, in the file's order
  std::vector<std::string> notes;    // what was left out: unreadable lines, copies, injected records

  std::size_t count(Verdict verdict) const;
  // failed if a floor failed; no_data if one is inconclusive, none was judged or no case finished.
  ExitCode code() const;
};

// Rules that have changed since packs were first written: a pack is judged by those of its time.
struct CheckRules {
  bool whole_runs = true;  // a required floor is inconclusive while a run has not measured all its cases
};

// `families`: those that this build knows, to suggest the nearest name if a pattern matches nothing.
// Throws UsageError if a floor's unit is that of no record that it matches, or neither they nor the table know its
// metric.
CheckResult check(const RunSet& runs, const Floors& floors, std::span<const std::string> families,
                  const CheckRules& rules = {});

// One line per floor, as pytest prints tests, with reasons below it.
Document check_document(const CheckResult& result);
// Everything in base units: {"schema":1,"counts":{..},"floors":[{"key":..,"verdict":..,"counts":{..},
// "records":[..]}]}; at most the 1,000 worst records of each floor.
Json check_json(const CheckResult& result);
// One test case per floor, for JUnit; floors that are inconclusive or not judged count as skipped, with the reason.
TestSuite check_suite(const CheckResult& result);

}  // namespace assay::report
