// The catalogue: every family that this build knows, in one explicit table.
#pragma once

#include "harness/plan/family.h"

#include <span>

namespace assay::cli {

// In the order in which they are listed; built on the first call.
std::span<const Family> catalogue();

}  // namespace assay::cli
