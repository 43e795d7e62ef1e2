// Memory of this process as the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace assay::training {

// Resident bytes now; nothing where /proc tells none.
std::optional<std::uint64_t> resident_bytes();
// The most there have been since forget_peak(), or since the process began where the kernel cannot forget.
std::optional<std::uint64_t> peak_resident_bytes();
// False when the kernel cannot.
bool forget_peak();

}  // namespace assay::training
