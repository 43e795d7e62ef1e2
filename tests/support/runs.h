// Runs and records made by hand.
#pragma once

#include "harness/record/run_dir.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::test {

// A run as it was read from `dir`; `more` are members of its run.json.
inline RunData run_of(std::vector<Record> records, const std::string& dir = "r", const Json& more = Json::object()) {
  RunData run;
  run.dir = dir;
  run.run = {{"schema", 1}};
  run.run.update(more);
  run.records = std::move(records);
  return run;
}

inline Metric metric(const std::string& name, std::optional<double> value, const std::string& unit,
                     std::optional<Interval> ci95 = {}, Better better = Better::higher) {
  Metric made;
  made.name = name;
  made.value = value;
  made.unit = unit;
  made.ci95 = ci95;
  made.better = better;
  return made;
}

inline Metric seconds(const std::string& name, double value, std::optional<Interval> ci95 = {}) {
  return metric(name, value, "s", ci95, Better::lower);
}

// A record of this key, of the family that the key begins with.
inline Record record_of(const std::string& key, std::vector<Metric> metrics) {
  Record record;
  record.key = key;
  record.family = key.substr(0, key.find('/'));
  record.metrics = std::move(metrics);
  return record;
}

}  // namespace assay::test
