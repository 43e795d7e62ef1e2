// AMX. Six tiles sum 32 x 48 elements of out over all of k, or a long chunk: a block of a and a panel of b stay in the
// L2 cache, the next panel comes there meanwhile, and the block of out before is written between the tile products,
// which need few other instructions. a is packed, since rows that are a power of two apart share few sets of a cache.
// On Granite Rapids (per core 2 MiB of L2, and L3 at 28 GB/s) 2048 x 3072 x 768 reaches 43 to 51 % of the peak, and
// 2048 cubed 39 to 44 %: there b from the L3 cache takes a third of the time. Tiles fed from L2 alone reach 75 to 80 %.
#include "harness/device/cpu/tile_config.h"
#include "workloads/ops/cpu/kernels/tile_kernels.h"
#include "workloads/ops/cpu/kernels/transpose.h"

#include <immintrin.h>

namespace assay::ops {

extern const TileKernels amx_tiles;

namespace {

using Index = std::int64_t;
using Half = std::uint16_t;  // the bits of a bf16

constexpr Index height = TileKernels::height;
constexpr Index width = TileKernels::width;
constexpr Index depth = TileKernels::depth;
constexpr Index lanes = 16;  // f32 of a vector, and rows of a tile
constexpr Index vectors = width / lanes;
constexpr Index tile = lanes * depth;   // elements of a tile of a
constexpr Index line = 64;              // bytes, also of a row of a tile
constexpr Index panel_row = width * 4;  // bytes of two rows of a panel, and of a row of sums
constexpr Index packed_at_once = 8;     // tiles, of each row

inline Index smaller(Index a, Index b) { return a < b ? a : b; }
inline Index groups_of(Index rows) { return (rows + height - 1) / height; }
inline __mmask16 mask16(Index count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}
inline __mmask32 mask32(Index count) { return mask16(count) | __mmask32{mask16(count - 16)} << 16; }

inline __m512 widened(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

inline __m512 load(const void* from, bool is_f32, Index index, __mmask16 mask) {
  if (is_f32) return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(from) + index);
  return widened(_mm256_maskz_loadu_epi16(mask, static_cast<const Half*>(from) + index));
}

// Sums that wait to be written: rows [row, end) of out, from `column` on.
struct Pending {
  float* sums = nullptr;
  Index row = 0, end = 0, column = 0;
};

inline void write_row(const TileProduct& p, Pending& pending) {
  float* const sums = pending.sums;
  const Index columns = smaller(width, p.n - pending.column), index = pending.row * p.n + pending.column;
  const Index size = p.out_is_f32 ? 4 : 2;
  char* const out = static_cast<char*>(p.out) + index * size;
  ++pending.row;
  pending.sums += width;
  if (p.bias)
    for (Index i = 0; i < vectors; ++i)
      _mm512_store_ps(sums + i * lanes, _mm512_add_ps(_mm512_load_ps(sums + i * lanes),
                                                      load(p.bias, p.bias_is_f32, pending.column + i * lanes,
                                                           mask16(columns - i * lanes))));
  if (p.gelu) return p.gelu(sums, static_cast<char*>(p.aux) + index * size, out, columns);
  if (p.gelu_gradient) return p.gelu_gradient(sums, static_cast<char*>(p.aux) + index * size, out, columns);
#pragma GCC unroll 3
  for (Index i = 0; i < vectors; ++i) {
    const __mmask16 mask = mask16(columns - i * lanes);
    __m512 x = _mm512_load_ps(sums + i * lanes);
    if (p.accumulate) x = _mm512_add_ps(x, load(p.out, p.out_is_f32, index + i * lanes, mask));
    if (!p.out_is_f32)
      _mm256_mask_storeu_epi16(out + i * line / 2, mask, (__m256i)_mm512_cvtneps_pbh(x));
    else if (!p.stream)
      _mm512_mask_storeu_ps(out + i * line, mask, x);
    else if (mask != 0)
      _mm512_stream_ps(reinterpret_cast<float*>(out + i * line), x);
  }
}

// Tells what comes into the L2 cache during the products.
struct Prefetch {
  const char* next = nullptr;
  Index lines = 0;
};

// Adds the products of `steps` tiles of 32 rows of a and of a panel of b to a block of sums, or writes them.
inline void multiply_tiles(const TileProduct& p, const Half* a, const char* b, float* sums, Index steps, bool add,
                           Prefetch fetch, Pending& pending) {
  constexpr Index below = lanes * width;  // from a sum to the one 16 rows below
  if (add) {
    _tile_loadd(0, sums, panel_row);
    _tile_loadd(1, sums + lanes, panel_row);
    _tile_loadd(2, sums + 2 * lanes, panel_row);
    _tile_loadd(3, sums + below, panel_row);
    _tile_loadd(4, sums + below + lanes, panel_row);
    _tile_loadd(5, sums + below + 2 * lanes, panel_row);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
  }
  const Index rows_per_step = (pending.end - pending.row + steps - 1) / steps;
  for (Index step = 0; step < steps; ++step) {
    _tile_loadd(6, a, line);
    _tile_loadd(7, b, panel_row);
    _tile_dpbf16ps(0, 6, 7);
    _tile_loadd(7, b + line, panel_row);
    _tile_dpbf16ps(1, 6, 7);
    _tile_loadd(7, b + 2 * line, panel_row);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(6, a + tile, line);
    _tile_dpbf16ps(5, 6, 7);
    _tile_loadd(7, b + line, panel_row);
    _tile_dpbf16ps(4, 6, 7);
    _tile_loadd(7, b, panel_row);
    _tile_dpbf16ps(3, 6, 7);
    a += 2 * tile;
    b += depth / 2 * panel_row;
    for (Index i = 0; i < rows_per_step && pending.row < pending.end; ++i) write_row(p, pending);
    for (Index i = 0; i < 2 * vectors && fetch.lines > 0; ++i, --fetch.lines, fetch.next += line)
      _mm_prefetch(fetch.next, _MM_HINT_T1);
  }
  _tile_stored(0, sums, panel_row);
  _tile_stored(1, sums + lanes, panel_row);
  _tile_stored(2, sums + 2 * lanes, panel_row);
  _tile_stored(3, sums + below, panel_row);
  _tile_stored(4, sums + below + lanes, panel_row);
  _tile_stored(5, sums + below + 2 * lanes, panel_row);
}

// Tiles of a group of 32 rows follow each other in k, two at a time: those of its first and its last 16 rows.
void pack_rows(const TileProduct& p, Index row, Index rows, Index k, Index chunk, Half* to) {
  const Index whole = smaller(chunk, p.k - k) / depth, steps = chunk / depth;
  for (Index group = 0; group < groups_of(rows); ++group, to += height * chunk)
    for (Index first = 0; first < steps; first += packed_at_once)
      for (Index r = 0; r < height; ++r) {
        Half* tiles = to + first * 2 * tile + r / lanes * tile + r % lanes * depth;
        const Index at = row + group * height + r, last = smaller(steps, first + packed_at_once);
        const bool exists = at < p.m;
        const Half* from = static_cast<const Half*>(p.a) + (exists ? at * p.k + k : 0);
        for (Index step = first; step < last; ++step, tiles += 2 * tile) {
          __m512i x = _mm512_setzero_si512();
          if (exists && step < whole) {
            _mm_prefetch(from + (step + packed_at_once) * depth, _MM_HINT_T0);
            x = _mm512_loadu_si512(from + step * depth);
          } else if (exists) {
            x = _mm512_maskz_loadu_epi16(mask32(p.k - k - step * depth), from + step * depth);
          }
          _mm512_store_si512(tiles, x);
        }
      }
}

// 16 pairs of elements of two neighbouring rows, as 32-bit units; rows from `end` on are zero.
inline __m512i pairs_of(const void* rows, Index row, Index end, Index stride, Index column, Index columns) {
  const __mmask16 mask = mask16(columns - column);
  const Half* from = static_cast<const Half*>(rows) + row * stride + column;
  const __m256i none = _mm256_setzero_si256();
  const __m256i lower = row < end ? _mm256_maskz_loadu_epi16(mask, from) : none;
  const __m256i upper = row + 1 < end ? _mm256_maskz_loadu_epi16(mask, from + stride) : none;
  return _mm512_or_si512(_mm512_cvtepu16_epi32(lower), _mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}

void pack_columns(const TileProduct& p, Index row, Index rows, Index k, Index chunk, Half* to) {
  for (Index step = 0; step < chunk; step += depth)
    for (Index group = 0; group < groups_of(rows); ++group)
      for (Index half = 0; half < 2; ++half) {
        alignas(64) std::uint32_t pairs[lanes * lanes];
        for (Index i = 0; i < lanes; ++i)
          _mm512_store_si512(pairs + i * lanes,
                             pairs_of(p.a, k + step + 2 * i, p.k, p.m, row + group * height + half * lanes, p.m));
        Half* tiles = to + group * height * chunk + step * height + half * tile;
        vector::transpose(pairs, lanes, lanes, lanes, reinterpret_cast<std::uint32_t*>(tiles), lanes);
      }
}

void multiply(const TileProduct& p, Index begin, Index end, Index first, Index last, void* packed, float* sums) {
  constexpr Index block = TileKernels::block;
  _tile_loadconfig(&cpu::full_tiles);
  auto* a = static_cast<Half*>(packed);
  const auto* panels = static_cast<const char*>(p.panels);
  const char* const panels_end = panels + last * p.padded_k * 2 * width;
  const bool in_chunks = p.chunk < p.padded_k;
  Pending pending;
  Index turn = 0;
  for (Index row = begin; row < end; row += p.block_rows) {
    const Index rows = smaller(p.block_rows, end - row), groups = groups_of(rows);
    for (Index k = 0; k < p.padded_k; k += p.chunk) {
      const Index chunk = smaller(p.chunk, p.padded_k - k);
      if (p.transpose_a)
        pack_columns(p, row, rows, k, chunk, a);
      else
        pack_rows(p, row, rows, k, chunk, a);
      // The intrinsics do not declare that they read memory.
      asm volatile("" : : "r"(a) : "memory");
      for (Index panel = first; panel < last; ++panel) {
        const char* b = panels + (panel * p.padded_k + k) * 2 * width;
        const char* next = b + p.padded_k * 2 * width;
        const Index lines = next < panels_end ? chunk * 2 * width / line : 0, each = (lines + groups - 1) / groups;
        for (Index group = 0; group < groups; ++group) {
          const Index at = in_chunks ? (panel - first) * groups + group : turn++ % 2;
          const Prefetch fetch{next + group * each * line, smaller(each, lines - group * each)};
          multiply_tiles(p, a + group * height * chunk, b, sums + at * block, chunk / depth, k > 0, fetch, pending);
          if (k + chunk < p.padded_k) continue;
          const Index top = row + group * height;
          pending = {sums + at * block, top, smaller(top + height, end), panel * width};
        }
      }
    }
  }
  while (pending.row < pending.end) write_row(p, pending);
  _tile_release();
  if (p.stream) _mm_sfence();
}

void pack(const TileProduct& p, const void* b, void* panels, Index begin, Index end) {
  for (Index k = begin; k < end; k += depth)
    for (Index first = 0; first < p.n; first += width) {
      char* to = static_cast<char*>(panels) + (first / width * p.padded_k + k) * 2 * width;
      for (Index i = k; i < k + depth; i += 2)
        for (Index column = first; column < first + width; column += lanes, to += line)
          _mm512_store_si512(to, pairs_of(b, i, p.k, p.n, column, p.n));
    }
}

}  // namespace

const TileKernels amx_tiles{multiply, pack};

}  // namespace assay::ops
