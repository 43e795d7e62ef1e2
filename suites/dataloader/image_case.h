// Cases of kind=image.
#pragma once

#include "harness/plan/case.h"

#include <memory>

namespace assay::dataloader {

inline constexpr std::int64_t image_batch = 32;
inline constexpr int image_size = 224;
inline constexpr std::int64_t decode_inputs = 1024;  // compressed images kept for stage=decode,
inline constexpr std::uint64_t decode_input_bytes = std::uint64_t{256} << 20;  // and the bytes that they may take
inline constexpr std::int64_t augment_inputs = 64;                             // decoded crops, or finished samples
// Share of the images seen that may be damaged before the case fails.
inline constexpr double corrupt_share_limit = 0.01;

std::unique_ptr<Case> make_image_case(const Params& params);
}  // namespace assay::dataloader
