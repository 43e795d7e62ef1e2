// The family `peak`: the rate of fused multiply-adds that the instruction set allows, the roof for matrix products.
#pragma once

#include "harness/plan/family.h"

namespace assay {

Family peak_family();

}  // namespace assay
