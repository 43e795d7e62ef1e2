#include "harness/watch/steps.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace assay::watch {
namespace {

constexpr std::size_t max_warm_up = 10;
constexpr std::ptrdiff_t min_steps = 3;
constexpr std::size_t block_steps = 7, settling_steps = 1;  // hook/assay_watch.py: BLOCK
constexpr double persistent_share = 0.75, chance_sigmas = 3;
constexpr double stall_sigmas = 3, min_sigma = 0.05;  // of the median
constexpr double share_in_passes = 0.5;               // of backward's share of a step

std::size_t warm_up_of(std::size_t steps) { return std::min(max_warm_up, steps / 10); }

double& of(Parts& parts, Part part) { return parts[static_cast<std::size_t>(part)]; }

// The seconds of a step by part; the least that any rank spent in collectives is the communication.
Parts parts_of(const Step& step, double communication) {
  Parts parts{};
  of(parts, Part::data_wait) = step.data_wait, of(parts, Part::forward) = step.forward();
  of(parts, Part::backward) = step.backward, of(parts, Part::optimizer) = step.optimizer;
  of(parts, Part::checkpoint) = step.checkpoint;
  of(parts, Part::communication) = std::min(communication, step.communication);
  of(parts, Part::waiting) = step.communication - of(parts, Part::communication);
  return parts;
}

// Of a rank's own time, without what it waits for others.
constexpr std::array own_parts = {Part::data_wait, Part::forward, Part::backward, Part::optimizer, Part::checkpoint};

// Whether a step counts, by its place: while one rank is recorded the others wait for it.
std::vector<bool> counting(const std::vector<RankSteps>& ranks) {
  std::vector<bool> counts;
  for (const RankSteps& rank : ranks) {
    counts.resize(std::max(counts.size(), rank.steps.size()), true);
    for (std::size_t i = 0; i < rank.steps.size(); ++i)
      if (rank.steps[i].recorded) counts[i] = false;
  }
  return counts;
}

// The steps that every rank has made and that have parts on all of them: rank by rank.
std::vector<std::vector<const Step*>> common_steps(const std::vector<RankSteps>& ranks, bool warms_up) {
  const std::vector<bool> counts = counting(ranks);
  std::size_t most = ranks.front().steps.size();
  for (const RankSteps& rank : ranks) most = std::min(most, rank.steps.size());
  std::vector<std::vector<const Step*>> common(ranks.size());
  for (std::size_t i = warms_up ? warm_up_of(most) : 0; i < most; ++i) {
    if (!counts[i] || !std::ranges::all_of(ranks, [i](const RankSteps& rank) { return rank.steps[i].parts; })) continue;
    for (std::size_t r = 0; r < ranks.size(); ++r) common[r].push_back(&ranks[r].steps[i]);
  }
  return common;
}

// Whether of ranks that are alike one would be last in this share of the steps less than once in 740 times (3 sigma).
// Where the steps are too few for that to tell, as in a trace, how far it is behind in each must say it as surely.
bool is_beyond_chance(double share_of_steps, const std::vector<double>& behind_by, std::size_t ranks) {
  const auto steps = static_cast<double>(behind_by.size());
  const double chance = 1 / static_cast<double>(ranks);
  const double limit = chance + chance_sigmas * std::sqrt(chance * (1 - chance) / steps);
  if (limit <= 1) return share_of_steps >= limit;
  if (std::ssize(behind_by) < min_steps) return false;
  const double sigmas =
      student_upper_quantile(steps - 1, normal_upper_tail(chance_sigmas) / static_cast<double>(ranks));
  return mean(behind_by) > sigmas * std::sqrt(squared_deviations(behind_by) / (steps - 1) / steps);
}

std::optional<Straggler> straggler_of(const std::vector<RankSteps>& ranks,
                                      const std::vector<std::vector<const Step*>>& common,
                                      const std::vector<RankParts>& means) {
  if (ranks.size() < 2 || common.front().empty()) return std::nullopt;
  const std::size_t count = common.front().size();
  const auto steps = static_cast<double>(count);
  const auto own = [&](std::size_t rank, std::size_t step) { return common[rank][step]->own(); };
  // Of one step, how far a rank is behind the median of the others.
  const auto lateness = [&](std::size_t rank, std::size_t step, auto&& time) {
    std::vector<double> others;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (r != rank) others.push_back(time(r, step));
    return time(rank, step) - median(others);
  };
  const auto last_of = [&](std::size_t step, auto&& time) {
    std::size_t last = 0;
    for (std::size_t r = 1; r < ranks.size(); ++r)
      if (time(r, step) > time(last, step)) last = r;
    return last;
  };
  // A wait for a CPU is the machine's doing, in sound jobs too; one that is always the same rank's counts as its own.
  const auto worked = [&](std::size_t rank, std::size_t step) {
    return own(rank, step) - common[rank][step]->ready.value_or(0);
  };
  Straggler found;
  std::vector<double> slowest(ranks.size(), 0), behind(ranks.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t last = last_of(i, own);
    const double late = lateness(last, i, own);
    slowest[last] += 1 / steps;
    behind[last] += late / steps;
    found.skew += late / steps;
    found.in_turn += lateness(last_of(i, worked), i, worked) / steps;
  }
  const auto worst = static_cast<std::size_t>(std::ranges::max_element(behind) - behind.begin());
  found.rank = ranks[worst].rank, found.host = ranks[worst].host, found.share_of_steps = slowest[worst];
  std::vector<double> behind_by;
  for (std::size_t i = 0; i < count; ++i) behind_by.push_back(lateness(worst, i, own));
  found.saved = mean(behind_by);
  found.persistent =
      found.share_of_steps >= persistent_share && is_beyond_chance(found.share_of_steps, behind_by, ranks.size());
  double most = -1;
  for (const Part part : own_parts) {
    std::vector<double> others;
    for (std::size_t r = 0; r < means.size(); ++r)
      if (r != worst) others.push_back(means[r].parts[static_cast<std::size_t>(part)]);
    const double late = means[worst].parts[static_cast<std::size_t>(part)] - median(others);
    if (late > most) most = late, found.part = part;
  }
  return found;
}

// `of`: the numbers of these steps, the first of `steps` being 1.
Stalls stalls_of(const std::vector<double>& seconds, const std::vector<std::int64_t>& of,
                 const std::vector<Step>& steps) {
  Stalls stalls;
  const double middle = median(seconds), sigma = std::max(robust_sigma(seconds), min_sigma * middle);
  double above = 0, all = 0;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    all += seconds[i];
    if (seconds[i] <= middle + stall_sigmas * sigma) continue;
    above += seconds[i] - middle;
    numbers.push_back(of[i]);
  }
  stalls.share = all > 0 ? above / all : 0;
  stalls.count = static_cast<std::int64_t>(numbers.size());
  if (numbers.empty()) return stalls;
  stalls.first = numbers.front(), stalls.last = numbers.back();
  const auto step_of = [&](std::int64_t number) -> const Step& { return steps[static_cast<std::size_t>(number) - 1]; };
  std::vector<double> backward;
  for (const std::int64_t number : of)
    if (step_of(number).parts) backward.push_back(step_of(number).backward);
  if (const double usual = backward.empty() ? 0 : median(backward); usual > 0) {
    double longer = 0, longer_backward = 0;
    for (const std::int64_t number : numbers) {
      if (!step_of(number).parts) continue;
      longer += step_of(number).total - middle;
      longer_backward += step_of(number).backward - usual;
    }
    stalls.of_passes = longer > 0 && longer_backward / longer >= share_in_passes * usual / middle;
  }
  std::map<std::int64_t, std::size_t> gaps;
  for (std::size_t i = 1; i < numbers.size(); ++i) ++gaps[numbers[i] - numbers[i - 1]];
  for (const auto& [gap, times] : gaps)
    if (times >= 2 && 2 * times > numbers.size() - 1 && gap > 1) stalls.every = gap;
  return stalls;
}

std::optional<Overhead> overhead_of(const std::vector<Step>& steps) {
  std::vector<double> medians;  // of blocks with and without hooks in turn
  for (std::size_t begin = 0; begin + block_steps <= steps.size(); begin += block_steps) {
    const bool with = (begin / block_steps) % 2 == 0;
    std::vector<double> seconds;
    std::size_t recorded = 0;
    for (std::size_t i = begin + settling_steps; i < begin + block_steps; ++i)
      if (steps[i].recorded)
        ++recorded;
      else if (steps[i].parts == with)
        seconds.push_back(steps[i].total);
    if (seconds.size() + recorded < block_steps - settling_steps) break;
    medians.push_back(seconds.empty() ? std::numeric_limits<double>::quiet_NaN() : median(seconds));
  }
  // Each block beside the two around it, as jobs become faster or slower with time; the first warms up.
  std::vector<double> ratios;
  for (std::size_t i = 2; i + 1 < medians.size(); ++i) {
    const double around = (medians[i - 1] + medians[i + 1]) / 2;
    const double ratio = i % 2 == 0 ? medians[i] / around : around / medians[i];
    if (std::isfinite(ratio)) ratios.push_back(ratio - 1);
  }
  if (ratios.size() < 2) return std::nullopt;
  return Overhead{median(ratios), median_interval(ratios)};
}

JobSteps summed(std::vector<RankSteps> ranks, bool warms_up) {
  std::ranges::sort(ranks, {}, &RankSteps::rank);
  JobSteps job;
  for (const RankSteps& rank : ranks) job.count = std::max(job.count, static_cast<std::int64_t>(rank.steps.size()));
  const std::vector<Step>& first = ranks.front().steps;
  const std::size_t warm_up = warms_up ? warm_up_of(first.size()) : 0;
  const std::vector<bool> counts = counting(ranks);
  job.recorded = std::ranges::count(counts, false);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = warm_up; i < first.size(); ++i) {
    if (!counts[i]) continue;
    job.seconds.push_back(first[i].total), job.ends.push_back(first[i].end);
    numbers.push_back(static_cast<std::int64_t>(i) + 1);
  }
  job.summary = summarize(job.seconds);
  job.p95 = quantile(job.seconds, 0.95);
  job.stalls = stalls_of(job.seconds, numbers, first);
  job.overhead = overhead_of(first);

  const auto common = common_steps(ranks, warms_up);
  const auto steps = static_cast<double>(common.front().size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankParts means{.rank = ranks[r].rank, .host = ranks[r].host};
    for (std::size_t i = 0; i < common[r].size(); ++i) {
      double least = common[r][i]->communication;
      for (const auto& other : common) least = std::min(least, other[i]->communication);
      const Step& step = *common[r][i];
      const Parts parts = parts_of(step, least);
      for (std::size_t p = 0; p < part_count; ++p) means.parts[p] += parts[p] / steps;
      means.step += step.total / steps;
      const double ready = step.ready.value_or(0);
      means.ready += ready / steps;
      means.off_cpu += (step.own() - step.data_wait - step.checkpoint - step.cpu - ready) / steps;
    }
    // What it computed beyond all other parts was computed in the loader.
    means.loading = std::clamp(-means.off_cpu, 0.0, means.parts[static_cast<std::size_t>(Part::data_wait)]);
    means.off_cpu = std::max(0.0, means.off_cpu);
    job.step += means.step / static_cast<double>(ranks.size());
    for (std::size_t p = 0; p < part_count; ++p) job.parts[p] += means.parts[p] / static_cast<double>(ranks.size());
    job.ranks.push_back(means);
  }
  job.straggler = straggler_of(ranks, common, job.ranks);
  for (const auto& of_rank : common)
    for (const Step* step : of_rank) {
      job.syncs += step->syncs;
      job.synced += step->synced;
    }
  // Not term by term: of a call a step, rounding must not make fewer.
  const double counted = std::max(1.0, steps) * static_cast<double>(ranks.size());
  job.syncs /= counted, job.synced /= counted;
  return job;
}

}  // namespace

double JobSteps::mean_share(double RankParts::*of) const {
  double sum = 0;
  for (const RankParts& rank : ranks) sum += rank.step > 0 ? rank.*of / rank.step : 0;
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

std::optional<JobSteps> steps_of_job(const std::vector<RankSteps>& all) {
  std::vector<RankSteps> ranks;
  const std::vector<bool> counts = counting(all);
  for (const RankSteps& rank : all)
    if (std::count(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank.steps.size()), true) >= min_steps)
      ranks.push_back(rank);
  if (ranks.empty()) return std::nullopt;
  return summed(std::move(ranks), true);
}

JobSteps steps_of_trace(std::vector<RankSteps> ranks) { return summed(std::move(ranks), false); }

}  // namespace assay::watch
