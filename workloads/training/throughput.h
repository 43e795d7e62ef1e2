// Throughput mode times steps one by one, and measures and checks everything else afterwards.
#pragma once

#include "harness/plan/case.h"
#include "workloads/training/settings.h"

#include <memory>

namespace assay::training {

std::unique_ptr<Case> make_throughput_case(const ModelFamily& family, const Params& params);

}  // namespace assay::training
