// The catalogue: an explicit table of all families.
#pragma once

#include "harness/plan/family.h"

#include <span>

namespace assay::cli {

// In the order of `assay list`; built on the first call.
std::span<const Family> catalogue();

}  // namespace assay::cli
