// Why a record's figures do not count, in the same words in every report.
#pragma once

#include "harness/record/record.h"

#include <optional>
#include <string>

namespace assay {

struct WhyLeftOut {
  std::string what;    // "skipped", "not comparable"
  std::string detail;  // "no AMX", "oversubscribed", or empty
  // "skipped: no AMX"
  std::string text() const;
  bool operator==(const WhyLeftOut&) const = default;
};

// Absent for a record whose figures count.
std::optional<WhyLeftOut> why_left_out(const Record& record);

}  // namespace assay
