// Acceptance: what a machine must reach (floors, from a file) against what runs measured.
#pragma once

#include "harness/core/error.h"
#include "reports/data/run_set.h"
#include "reports/model/document.h"
#include "reports/model/test_suite.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::report {

enum class Bound { at_least, at_most };

// One limit. Every record that it matches is judged, and the worst decides.
struct Floor {
  std::string key;     // pattern of keys: * stands for any characters, / included
  std::string metric;  // throughput, bandwidth, ...
  std::string unit;    // base unit of the metric
  Bound bound = Bound::at_least;
  double limit = 0;                           // in `unit`; of a relative floor a share of its fleet's median
  bool relative = false;                      // to the median of the hosts (or GPUs) that measured the same
  int min_members = 3;                        // of a fleet, below which nothing is judged
  Json protocol;                              // fields that the record's protocol must hold
  std::string device;                         // cpu, cuda; empty: any
  std::optional<int> ranks;                   // of the record's world
  std::optional<int> nodes;                   // of the record's world
  std::map<std::string, std::string> labels;  // patterns on labels of the record or its run
  std::string source;                         // why this limit
  std::string note;
  bool required = false;  // no usable record is a failure
  std::string pointer;    // into the file
};

struct Floors {
  std::string file;  // for messages
  std::string name;  // of the file, without folder and .json
  std::string description;
  std::vector<Floor> floors;
};

// Reads a floors file (comments allowed). Throws UsageError that lists every error of it: unknown members with the
// nearest name, wrong types, both or neither of at_least and at_most, a unit that does not fit the metric, no source,
// negative limits, an empty list, the same floor twice.
Floors load_floors(const std::filesystem::path& path);

// What became of one record under one floor, from worst to best.
enum class Outcome {
  fail,          // beyond the limit
  inconclusive,  // the 95 % interval holds the limit, or the fleet is too small
  unusable,      // skipped, failed, broken, not comparable, or its figure is unknown
  pass,
  refused,  // of another protocol than the floor asks for, or without such a metric: as if it were not there
};
std::string_view name_of(Outcome outcome);

struct Judgement {
  Entry entry;
  Outcome outcome = Outcome::unusable;
  std::string reason;             // empty when it passed with an interval
  std::string culprit;            // "rank 3, host b, NVIDIA H200": whose figure it is
  std::string pointer;            // of the figure in the record: /metrics/0/value
  std::optional<double> value;    // in the floor's unit
  std::optional<Interval> range;  // 95 %
  std::optional<double> limit;    // in the floor's unit: of a relative floor made from the fleet
  std::optional<double> median;   // of the fleet
  std::size_t members = 0;        // of the fleet
};

enum class Verdict { pass, fail, inconclusive, not_judged };
std::string_view name_of(Verdict verdict);

struct FloorResult {
  const Floor* floor = nullptr;
  Verdict verdict = Verdict::not_judged;
  std::string reason;              // why it is not a plain pass
  std::vector<Judgement> records;  // worst first
};

// Points into the floors and the runs, which must outlive it.
struct CheckResult {
  const Floors* floors = nullptr;
  const RunSet* runs = nullptr;
  std::vector<FloorResult> results;  // one a floor, in the file's order
  std::vector<std::string> notes;    // what was left out: unreadable lines, copies, injected records

  std::size_t count(Verdict verdict) const;
  // failed when a floor failed, no_data when one is inconclusive, none was judged or no case was finished.
  ExitCode code() const;
};

// `families` are those that this build knows, for the nearest name when a pattern matches nothing.
// Throws UsageError when a floor's unit is not the records' own, or no record and no table knows its metric.
CheckResult check(const RunSet& runs, const Floors& floors, std::span<const std::string> families);

// A line a floor, pytest's way, with reasons below it.
Document check_document(const CheckResult& result);
// All of it in base units: {"schema":1,"counts":{..},"floors":[{"key":..,"verdict":..,"counts":{..},
// "records":[..]}]}; of a floor's records the 1,000 worst.
Json check_json(const CheckResult& result);
// A test case a floor, for JUnit; what is inconclusive or not judged is skipped there, with its reason.
TestSuite check_suite(const CheckResult& result);

}  // namespace assay::report
