// A site's policy for its gates (`assay gate --policy FILE`): what a problem means there, when suspicions add up, and
// how many machines may be drained.
#pragma once

#include "harness/fitness/gate/catalogue.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace assay::gate {

// So many suspect gates of a host within a time, the last one included, drain it.
struct Escalation {
  std::size_t times = 0;
  double within_seconds = 0;
};

// How many machines may be drained within a time: a share of the fleet, which is at least one machine, or a number.
struct AtMost {
  std::string text;  // "5% in 1h"
  std::optional<double> share = {};
  std::size_t count = 0;
  double within_seconds = 0;
  std::size_t fleet = 0;              // machines; 0: those whose gates have asked
  std::filesystem::path shared = {};  // the folder that all gates count in; empty: that of this host's past verdicts
};

struct Policy {
  std::string file;
  std::map<std::string, Severity> severities = {};  // by id; others have those of the catalogue
  std::optional<Escalation> suspect = {};
  std::optional<AtMost> at_most = {};
};

// {"nic-down":"drain", "ASSAY-GPU-031":"ok", "suspect":{"times":3, "within":"7d", "then":"drain"},
//  "at_most":"5% in 1h", "shared":"/shared/assay-gate", "hosts":64}; every member is optional. Throws UsageError that
// lists every mistake, with the nearest id for one that the catalogue lacks.
Policy read_policy(const std::filesystem::path& file, const Catalogue& catalogue);
// Its severities replace those of the codes.
void apply(const Policy& policy, Catalogue& catalogue);

}  // namespace assay::gate
