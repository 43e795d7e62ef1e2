// When to stop sampling: on low noise, when noise has stopped falling, or on the time limit.
#pragma once

#include "harness/record/protocol.h"
#include "harness/statistics/statistics.h"

#include <optional>
#include <string_view>
#include <vector>

namespace assay {

enum class StopReason {
  noise,    // as low as the protocol asks for
  plateau,  // noise has stopped falling
  time,
  count,
  done,  // the case ended by itself (procedure form)
};
std::string_view name_of(StopReason reason);

// Fed one sample at a time; a pure function of what it is fed, so that ranks fed the same stop together.
// It never stops before the first sample, nor before protocol.min_samples unless time is up.
class StopRule {
 public:
  explicit StopRule(const Protocol& protocol);

  // Takes a sample and the seconds spent on sampling so far; true when that was enough.
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
