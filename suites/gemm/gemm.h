// The family `gemm`: matrix products in each dtype, shape and transpose, as training runs them.
#pragma once

#include "harness/plan/family.h"

namespace assay {

Family gemm_family();

}  // namespace assay
