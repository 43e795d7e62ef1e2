// When to stop sampling: on low noise, when noise no longer falls, or at the time limit.
#pragma once

#include "harness/core/words.h"
#include "harness/record/protocol.h"

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

enum class StopReason {
  noise,    // the interval is as narrow as the protocol asks for
  plateau,  // noise no longer falls
  time,
  count,
  done,  // the case ended on its own (procedure form)
};
constexpr auto words(StopReason) {
  return std::to_array<std::string_view>({"noise", "plateau", "time", "count", "done"});
}

// A pure function of the samples it is given, so that ranks given the same samples stop together. Never stops before
// the first sample, nor before protocol.min_samples unless time is up.
class StopRule {
 public:
  explicit StopRule(const Protocol& protocol);

  // Adds samples, given the seconds spent on sampling so far; true if that is enough.
  bool add(std::span<const double> values, double elapsed_seconds);
  bool add(double value, double elapsed_seconds) { return add(std::span(&value, 1), elapsed_seconds); }

  // How many samples to take before the next add(), when ranks need time to agree: as many as fit a fiftieth of the
  // time limit, but at least 16 unless 16 would take more than a tenth of the limit. The batch takes all the time that
  // is left if little would remain for another one. `sample_seconds`: the time of recent samples; any value at first.
  std::size_t next_batch(double sample_seconds, double elapsed_seconds);

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
  bool last_batch_ = false;
  std::optional<StopReason> stopped_by_;
};

}  // namespace assay
