// Runs one case on this rank like a worker, without channel or record.
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
  Attributes conditions, choices, labels;
  Measurement measurement;
  std::vector<Check> checks;
  std::vector<Metric> metrics;
  std::vector<std::string> flags;
  std::optional<Matrix> matrix;
  std::vector<RankGroup> groups;

  // The check or metric of that name; throws Error if there is none.
  const Check& check(const std::string& name) const;
  const Metric& metric(const std::string& name) const;
};

// The family's first defaults with `changes`, and few samples, so it takes milliseconds.
Outcome run_case(const Family& family, const std::map<std::string, ParamValue>& changes, Communicator& comm,
                 const std::set<Fault>& faults = {});

}  // namespace assay::test
