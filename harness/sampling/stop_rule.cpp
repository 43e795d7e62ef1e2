// The stop rule. Looking often, and stopping on an interval that is narrow by luck, would make intervals miss the true
// value, so
//  - it looks only at geometrically spaced sample counts: a dozen looks up to thousands of samples;
//  - it judges noise by the 98 % interval, scaled to the width of the 95 % interval of the same samples: its ends lie
//    further out and reach a second mode of which there are few samples yet;
//  - two looks in a row must agree, the second on half as many samples again: a correlation hidden in the first samples
//    shows in the next.
// A thousand samples within a few milliseconds see one scheduler tick and one clock frequency: noise and plateau cannot
// end sampling before a tenth of the time limit.
#include "harness/sampling/stop_rule.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

constexpr double look_growth = 1.5;
constexpr double stop_confidence = 0.98;
// Over four looks the number of samples grows fivefold, and the noise of independent samples falls to 0.44.
constexpr std::size_t plateau_looks = 4;
constexpr double plateau_fall = 0.8;
constexpr double drift_factor = 10;
constexpr double min_share_of_time = 0.1;  // share of max_seconds
// More samples do not make a median more precise, and isolated calls of a microsecond would fill memory.
constexpr std::size_t max_kept_samples = 100'000;
// Sizes of the batches between which ranks agree.
constexpr double min_batch = 16, max_batch = 256;
constexpr double batch_share_of_time = 0.02, max_batch_share_of_time = 0.1;

double normal_half_width(double confidence) { return normal_quantile(0.5 * (1.0 + confidence)); }

}  // namespace

StopRule::StopRule(const Protocol& protocol)
    : max_seconds_(protocol.max_seconds),
      target_(protocol.target_relative_ci),
      min_samples_(static_cast<std::size_t>(std::max(protocol.min_samples, 1))),
      max_samples_(protocol.max_samples > 0 ? static_cast<std::size_t>(protocol.max_samples) : max_kept_samples),
      next_look_(min_samples_) {}

std::size_t StopRule::next_batch(double sample_seconds, double elapsed_seconds) {
  const double each = std::max(sample_seconds, 1e-9);
  const double min_count = std::clamp(std::floor(max_batch_share_of_time * max_seconds_ / each), 1.0, min_batch);
  double count = std::clamp(std::floor(batch_share_of_time * max_seconds_ / each), min_count, max_batch);
  // A step of warm-up is no basis: it may have taken far longer than the others will.
  const double left = std::ceil((max_seconds_ - elapsed_seconds) / each);
  last_batch_ = !values_.empty() && left < count + min_count;
  if (last_batch_) count = std::max(left, 1.0);
  return std::min(static_cast<std::size_t>(count), max_samples_ - values_.size());
}

bool StopRule::add(std::span<const double> values, double elapsed_seconds) {
  values_.insert(values_.end(), values.begin(), values.end());
  const std::size_t n = values_.size();
  if (n >= max_samples_) {
    stopped_by_ = StopReason::count;
  } else if (last_batch_ || elapsed_seconds >= max_seconds_) {
    stopped_by_ = StopReason::time;
  } else if (n >= next_look_) {
    next_look_ = static_cast<std::size_t>(std::ceil(static_cast<double>(n) * look_growth));
    look(elapsed_seconds >= min_share_of_time * max_seconds_);
  }
  return stopped_by_.has_value();
}

void StopRule::look(bool may_stop) {
  static const double scale = normal_half_width(0.95) / normal_half_width(stop_confidence);
  const Summary summary = summarize(values_, stop_confidence);
  double half = 0;
  if (summary.ci95) {
    half = 0.5 * scale * (summary.ci95->high - summary.ci95->low);
  } else {
    // A drift that outlasts the samples: more time may show its extent, unless it is far below the target.
    half = drift_factor * 0.5 * (quantile(values_, 0.99) - quantile(values_, 0.01));
  }
  const double width = half > 0 ? half / std::abs(summary.median) : 0.0;
  half_widths_.push_back(width);

  const std::size_t looks = half_widths_.size();
  if (!may_stop) return;
  if (looks >= 2 && std::max(width, half_widths_[looks - 2]) <= target_) {
    stopped_by_ = StopReason::noise;
  } else if (looks > plateau_looks) {
    const double before = half_widths_[looks - 1 - plateau_looks];
    if (summary.ci95 && width > plateau_fall * before) stopped_by_ = StopReason::plateau;
  }
}

}  // namespace assay
