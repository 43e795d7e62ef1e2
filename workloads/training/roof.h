// What the matrix units of all ranks can do at most, and who says so.
#pragma once

#include "harness/plan/case.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay::training {

struct Roof {
  double flops = 0;  // FLOP/s of all ranks
  std::string source;
};

// From the sheets of configs/hardware, dense. On a CPU only where the ranks' threads fill whole sockets of a machine
// that is no virtual one: of a share of a socket no sheet speaks.
std::optional<Roof> sheet_roof(const Context& context, std::string_view precision, int threads);
// From a `peak` case earlier in the same run.
std::optional<Roof> measured_roof(const Context& context, std::string_view precision, int threads);

}  // namespace assay::training
