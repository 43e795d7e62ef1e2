// The cases of training families.
#pragma once

#include "harness/plan/case.h"
#include "workloads/training/settings.h"

#include <memory>

namespace assay::training {

// Quality mode: seeded runs to a target, timed by MLPerf's rules; the samples of the record are their times.
std::unique_ptr<Case> make_quality_case(const ModelFamily& family, const Params& params);

// Throughput mode times steps one by one, and measures and checks everything else afterwards.
std::unique_ptr<Case> make_throughput_case(const ModelFamily& family, const Params& params);

}  // namespace assay::training
