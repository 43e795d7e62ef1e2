// The peak rate of the matrix units of all ranks, and its source.
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

// The dense peak in the sheets of configs/hardware. On a CPU it is known only if the ranks' threads fill whole sockets
// of a physical machine, since sheets say nothing about part of a socket.
std::optional<Roof> sheet_roof(const Context& context, std::string_view precision, int threads);
// From an earlier `peak` case of the same run.
std::optional<Roof> measured_roof(const Context& context, std::string_view precision, int threads);

}  // namespace assay::training
