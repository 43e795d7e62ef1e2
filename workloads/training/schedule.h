// Learning rate by step: linear warm-up, then constant, cosine, polynomial or stepwise.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::training {

enum class Decay { constant, cosine, polynomial, step };

struct Schedule {
  double base = 0;                // rate at the end of warm-up
  std::int64_t warmup_steps = 0;  // step s has the rate base * s / warmup_steps
  Decay decay = Decay::constant;
  std::int64_t total_steps = 0;  // cosine, polynomial: the last step of the decay
  double end_factor = 0;         // cosine, polynomial: fraction of base at the end and after
  double power = 1;              // polynomial: base * ((1 - p)^power (1 - end_factor) + end_factor), p the progress
  std::vector<std::int64_t> milestones = {};  // step: after each of these steps the rate is multiplied by `factor`
  double factor = 0.1;
};

// The rate of optimizer step `step`, counted from 1.
// Cosine: base * (end_factor + (1 - end_factor) (1 + cos(pi p)) / 2), p from 0 after warm-up to 1 at total_steps
// (Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts).
double learning_rate(const Schedule& schedule, std::int64_t step);

// The same for steps that are only timed: the base rate, after a linear warm-up over ten steps.
double timing_rate(const Schedule& schedule, std::int64_t step);

}  // namespace assay::training
