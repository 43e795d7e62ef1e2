// AMX: tiles of 16 rows of 64 bytes. Five tiles are sums, one is x, two are y. A tile product takes 16 cycles and has a
// latency of 52, so four sums would suffice.
#include "harness/device/cpu/tile_config.h"
#include "suites/peak/loop.h"

#include <immintrin.h>

namespace assay::peak {

namespace {

constexpr int sums_in_tiles = 5;
constexpr std::size_t tile_bytes = 1024;
constexpr std::size_t row_bytes = 64;

// Every tile starts at its index: sums in f32 or s32.
template <typename T>
void start_tiles() {
  alignas(64) T tile[tile_bytes / sizeof(T)];
  const auto fill = [&](int i) {
    for (T& value : tile) value = static_cast<T>(i);
    // The intrinsics do not declare that they read memory.
    asm volatile("" : : "r"(tile) : "memory");
  };
  fill(0);
  _tile_loadd(0, tile, row_bytes);
  fill(1);
  _tile_loadd(1, tile, row_bytes);
  fill(2);
  _tile_loadd(2, tile, row_bytes);
  fill(3);
  _tile_loadd(3, tile, row_bytes);
  fill(4);
  _tile_loadd(4, tile, row_bytes);
}

void configure(const Operands& operands) {
  _tile_loadconfig(&cpu::full_tiles);
  _tile_loadd(5, operands.x.data(), row_bytes);
  _tile_loadd(6, operands.y0.data(), row_bytes);
  _tile_loadd(7, operands.y1.data(), row_bytes);
}

void store_tiles(void* sums) {
  char* to = static_cast<char*>(sums);
  static_assert(sums_in_tiles == 5);
  _tile_stored(0, to, row_bytes);
  _tile_stored(1, to + tile_bytes, row_bytes);
  _tile_stored(2, to + 2 * tile_bytes, row_bytes);
  _tile_stored(3, to + 3 * tile_bytes, row_bytes);
  _tile_stored(4, to + 4 * tile_bytes, row_bytes);
  _tile_release();
}

}  // namespace

void amx_bf16(const Operands& operands, std::int64_t pairs, void* sums) {
  configure(operands);
  start_tiles<float>();
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    _tile_dpbf16ps(0, 5, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 6);
    _tile_dpbf16ps(4, 5, 6);
    _tile_dpbf16ps(0, 5, 7);
    _tile_dpbf16ps(1, 5, 7);
    _tile_dpbf16ps(2, 5, 7);
    _tile_dpbf16ps(3, 5, 7);
    _tile_dpbf16ps(4, 5, 7);
  }
  store_tiles(sums);
}

void amx_int8(const Operands& operands, std::int64_t pairs, void* sums) {
  configure(operands);
  start_tiles<std::int32_t>();
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    _tile_dpbusd(0, 5, 6);
    _tile_dpbusd(1, 5, 6);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 6);
    _tile_dpbusd(4, 5, 6);
    _tile_dpbusd(0, 5, 7);
    _tile_dpbusd(1, 5, 7);
    _tile_dpbusd(2, 5, 7);
    _tile_dpbusd(3, 5, 7);
    _tile_dpbusd(4, 5, 7);
  }
  store_tiles(sums);
}

}  // namespace assay::peak
