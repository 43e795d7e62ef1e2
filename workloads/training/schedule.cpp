#include "workloads/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay::training {

double learning_rate(const Schedule& schedule, std::int64_t step) {
  const double base = schedule.base;
  if (step <= schedule.warmup_steps)
    return base * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  const auto whole = static_cast<double>(std::max<std::int64_t>(1, schedule.total_steps - schedule.warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / whole);
  const double end = schedule.end_factor;
  switch (schedule.decay) {
    case Decay::constant: return base;
    case Decay::cosine: return base * (end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
    case Decay::polynomial: return base * (end + (1 - end) * std::pow(1 - progress, schedule.power));
    case Decay::step: break;
  }
  double rate = base;
  for (const std::int64_t milestone : schedule.milestones)
    if (step > milestone) rate *= schedule.factor;
  return rate;
}

double timing_rate(const Schedule& schedule, std::int64_t step) {
  return learning_rate({.base = schedule.base, .warmup_steps = 10}, step);
}

}  // namespace assay::training
