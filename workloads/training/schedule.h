// Learning rate by step: linear warm-up, then constant, cosine, polynomial or in steps.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::training {

enum class Decay { constant, cosine, polynomial, step };

struct Schedule {
  double base = 0;                // the rate that warm-up ends at
  std::int64_t warmup_steps = 0;  // step s of these runs at base * s / warmup_steps
  Decay decay = Decay::constant;
  std::int64_t total_steps = 0;  // cosine, polynomial: the step that reaches the end
  double end_factor = 0;         // cosine, polynomial: of base, at the end and after it
  double power = 1;              // polynomial: base * ((1 - p)^power (1 - end_factor) + end_factor), p the progress
  std::vector<std::int64_t> milestones = {};  // step: after each of these steps the rate is multiplied by `factor`
  double factor = 0.1;
};

// The rate of optimizer step `step`, counted from 1.
// Cosine: base * (end_factor + (1 - end_factor) (1 + cos(pi p)) / 2), p from 0 after warm-up to 1 at total_steps
// (Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts).
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace assay::training
