// When to stop sampling: on low noise, when noise no longer falls, or at the time limit.
#pragma once

#include "harness/record/protocol.h"
#include "harness/statistics/statistics.h"

#include <optional>
#include <string_view>
#include <vector>

namespace assay {

enum class StopReason {
  noise,    // as low as the protocol asks for
  plateau,  // noise no longer falls
  time,
  count,
  done,  // the case ended on its own (procedure form)
};
std::string_view name_of(StopReason reason);

// A pure function of the samples it is given one at a time, so that ranks given the same samples stop together. Never
// stops before the first sample, nor before protocol.min_samples unless time is up.
class StopRule {
 public:
  explicit StopRule(const Protocol& protocol);

  // Adds a sample, given the seconds spent on sampling so far; true if that is enough.
  bool add(double value, double elapsed_seconds);

  const std::vector<double>& values() const { return values_; }
  // Absent until add() has returned true.
  std::optional<StopReason> stopped_by() const { return stopped_by_; }

 private:
  void look(bool may_stop);

  double max_seconds_;
  double target_;
  std::size_t min_samples_;
  std::size_t max_samples_;
  std::size_t next_look_;
  std::vector<double> values_;
  std::vector<double> half_widths_;  // relative, one per look
  std::optional<StopReason> stopped_by_;
};

}  // namespace assay
