// The architecture of a model that Assay trains itself.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/transformer/config.h"

namespace assay::estimate {

architecture::Architecture architecture_of(const transformer::Config& config);

}  // namespace assay::estimate
