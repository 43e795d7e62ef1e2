// How a training step divides into its parts, and its communication measured in two ways.
#pragma once

#include "harness/record/record.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// The spans of a training step, each with its name for people.
inline constexpr std::array<std::pair<std::string_view, const char*>, 5> step_parts{
    {{"forward", "forward"},
     {"backward", "backward"},
     {"optimizer", "optimizer"},
     {"data_wait", "waiting for data"},
     {"exposed_communication", "communication"}}};

// The fraction of a training step that one of its parts takes; absent if the record lacks the step or the part. A part
// is a mean and the step a median: where the parts do not fit, they are shares of their own sum. `step_seconds` stands
// for the record's step, such as an end of its interval.
std::optional<double> step_share(const Record& record, std::string_view part, std::optional<double> step_seconds = {});

// Both are fractions of the step.
struct CommunicationShare {
  double pending = 0;           // time in which rank 0 computed nothing and waited for a collective
  std::optional<double> muted;  // how much longer the step takes than one that exchanges nothing

  // "by muting 1 %, because ...": the second figure, and why if it is not about the first one; empty if unknown.
  std::string by_muting() const;
  bool agree() const;  // also if there is nothing to compare with
};
// Absent without a step that was timed by parts.
std::optional<CommunicationShare> communication_share(const Record& record);

}  // namespace assay
