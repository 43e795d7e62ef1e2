// The operand of LDTILECFG (Intel SDM, volume 1, 18.3).
#pragma once

#include <cstdint>

namespace assay::cpu {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

// All eight tiles with 16 rows of 64 bytes.
inline constexpr TileConfig full_tiles{.bytes_per_row = {64, 64, 64, 64, 64, 64, 64, 64},
                                       .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

}  // namespace assay::cpu
