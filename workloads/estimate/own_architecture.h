// The architecture of a model that Assay trains itself.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/transformer/config.h"

namespace assay::estimate {

architecture::Architecture architecture_of(const transformer::Config& config);

// The same with a matrix for each of queries, keys and values, and for each half of a gated MLP's input, as
// `transformers` has them; a model that has them apart is as it was.
architecture::Architecture with_separate_projections(architecture::Architecture model);

}  // namespace assay::estimate
