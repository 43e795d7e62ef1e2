// Runs one case on this rank as a worker does, without channel or record.
#pragma once

#include "harness/plan/family.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::test {

struct Outcome {
  std::optional<std::string> skipped;
  Protocol protocol;
  std::map<std::string, std::string> conditions;
  std::map<std::string, std::string> choices;
  std::map<std::string, std::string> labels;
  Measurement measurement;
  std::vector<Check> checks;
  std::vector<Metric> metrics;
  std::vector<std::string> flags;
  std::optional<Matrix> matrix;

  // The check or metric of that name; throws Error if there is none.
  const Check& check(const std::string& name) const;
  const Metric& metric(const std::string& name) const;
};

// The family's first defaults with `changes`; few samples, so that it takes milliseconds.
Outcome run_case(const Family& family, const std::map<std::string, ParamValue>& changes, Communicator& comm,
                 const std::set<Fault>& faults = {});

}  // namespace assay::test
