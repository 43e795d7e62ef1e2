// The figures that matter: at most ten per machine, chosen by rule.
#pragma once

#include "harness/runs/groups.h"

#include <string>
#include <vector>

namespace assay {

struct KeyFigure {
  const Entry* entry = nullptr;
  const Metric* metric = nullptr;
  std::string title;  // "gemm f32 2048 x 2048 x 2048", "train gpt2-124m f32 4 x 512, step time"
};

// The figures that a reader asks for first, from the newest record of each case: the best GEMM of each dtype, and
// beside it the best sustained GEMM if there is one; memory triad, copy and latency at the largest size; all-reduce's
// bus bandwidth on the most ranks at the largest size; the best rate of each kind of loader (whole pipeline); each
// model's best training rate with its step time, and its time to quality. Families without a rule contribute their
// first figure. Beyond ten, third dtypes and models are dropped first.
std::vector<KeyFigure> key_figures(const MachineRuns& machine);

}  // namespace assay
