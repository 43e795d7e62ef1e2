// The sampler's form `rounds`: several measurements in one case, by disjoint groups of ranks.
#include "harness/comm/gather.h"
#include "harness/core/error.h"
#include "harness/sampling/sampler.h"

#include <cmath>
#include <limits>

namespace assay {

namespace {

// Samples per round: all ranks receive them in the end.
constexpr int max_round_samples = 1000;
constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

Protocol share_of(const Protocol& whole, int count) {
  Protocol share = whole;
  share.max_seconds = std::max(whole.max_seconds / count, std::min(whole.max_seconds, Sampler::min_round_seconds));
  share.warmup_seconds = std::min(whole.warmup_seconds, share.max_seconds / 5);
  if (share.max_samples == 0 || share.max_samples > max_round_samples) share.max_samples = max_round_samples;
  return share;
}

}  // namespace

void Sampler::rounds(int count, const std::function<Round(int)>& make) {
  ASSAY_CHECK(count >= 1, "a case of {} rounds", count);
  const Protocol share = share_of(own_protocol_, count);
  const double start = clock_();
  Measurement slowest;
  std::vector<double> medians;
  std::vector<RoundResult> own(static_cast<std::size_t>(count), {not_measured, not_measured, not_measured});
  protocol_ = &share;
  for (int i = 0; i < count; ++i) {
    const Round round = make(i);
    if (!round.comm) continue;
    comm_ = round.comm;
    repeat_here(Rotation{}, round.fn, {});
    comm_ = &world_;
    if (round.after) round.after(*stream_);
    const Summary& summary = measurement_.summary;
    const Interval range = summary.ci95.value_or(Interval{not_measured, not_measured});
    own[static_cast<std::size_t>(i)] = {summary.median, range.low, range.high};
    medians.push_back(summary.median);
    if (slowest.values.empty() || summary.median > slowest.summary.median) slowest = std::move(measurement_);
  }
  protocol_ = &own_protocol_;

  measurement_ = std::move(slowest);
  const double seconds = world_.max_of(clock_() - start);
  // The first of the ranks whose slowest round is the slowest of all.
  const std::vector<double> worst = gather(world_, medians.empty() ? -1.0 : measurement_.summary.median);
  const auto slowest_rank = std::ranges::max_element(worst);
  ASSAY_CHECK(*slowest_rank >= 0, "no rank took part in any of {} rounds", count);
  copy_from(static_cast<int>(slowest_rank - worst.begin()));
  measurement_.window_start = start;
  measurement_.window_seconds = seconds;

  const auto ranks = static_cast<std::size_t>(world_.size()), each = own.size();
  std::vector<RoundResult> all(ranks * each);
  world_.all_gather_host(own.data(), all.data(), each * sizeof(RoundResult));
  measurement_.rounds.assign(each, std::vector<std::optional<RoundResult>>(ranks));
  measurement_.rank_medians.clear();
  measurement_.rank_paces.clear();  // in a pair no rank has a pace of its own
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<double> mine;
    for (std::size_t i = 0; i < each; ++i) {
      const RoundResult& result = all[r * each + i];
      if (std::isnan(result.median)) continue;
      measurement_.rounds[i][r] = result;
      mine.push_back(result.median);
    }
    measurement_.rank_medians.push_back(mine.empty() ? not_measured : median(mine));
  }
}

}  // namespace assay
