// Cases of kind=token.
#pragma once

#include "harness/plan/case.h"

#include <memory>

namespace assay::dataloader {

inline constexpr std::int64_t token_batch = 64;  // windows
inline constexpr std::int64_t token_grain = 16;  // windows that a worker takes at a time

std::unique_ptr<Case> make_token_case(const Params& params);

}  // namespace assay::dataloader
