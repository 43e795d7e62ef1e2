// Quality mode: seeded runs to a target, timed by MLPerf's rules; the samples of the record are their times.
#pragma once

#include "harness/plan/case.h"
#include "workloads/training/settings.h"

#include <memory>

namespace assay::training {

std::unique_ptr<Case> make_quality_case(const ModelFamily& family, const Params& params);

}  // namespace assay::training
