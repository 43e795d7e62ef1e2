#include "suites/memory/cuda/variants.h"

#include "harness/core/error.h"
#include "harness/device/cuda/check.h"

#include <algorithm>

namespace assay::memory {

void refuse(const Variant& variant) { throw Error("memory: no kernel with " + variant.text()); }

Walk walk_of(const Variant& variant, std::size_t vectors, std::uint64_t passes) {
  const std::size_t tile = static_cast<std::size_t>(variant.threads) * static_cast<std::size_t>(variant.unroll);
  const std::size_t tiles = std::max<std::size_t>(1, (vectors + tile - 1) / tile);
  const std::size_t turns = tiles * passes;
  std::size_t blocks = turns;
  if (variant.blocks_per_unit > 0) {
    int device = 0, units = 0;
    ASSAY_CUDA(cudaGetDevice(&device));
    ASSAY_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device));
    blocks = std::min(blocks, static_cast<std::size_t>(units) * static_cast<std::size_t>(variant.blocks_per_unit));
  }
  constexpr std::size_t max_blocks = (std::size_t{1} << 31) - 1;
  blocks = std::min(blocks, max_blocks);
  return {tiles, turns, blocks % tiles, static_cast<unsigned>(blocks)};
}

}  // namespace assay::memory
