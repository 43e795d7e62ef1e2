// Loops over the shared functors, vectorised by the compiler: bf16 goes through f32 blocks that stay in the first-level
// cache.
#pragma once

#include "harness/device/cpu/vector/vector.h"

namespace assay::vector {
namespace {

constexpr std::int64_t stage = 256;  // elements of a block

// A block of x as f32: x itself, or `buffer` filled from x.
inline const float* staged(const float* x, float*, std::int64_t) { return x; }
inline const float* staged(const bf16* x, float* buffer, std::int64_t n) {
  for_vectors<4>(0, n, [&](std::int64_t i, auto count) { store(buffer + i, load(x + i, count)); });
  return buffer;
}

// Where to compute a block's results: y itself, or `buffer`, from which deliver() stores them to y.
inline float* place_for(float* y, float*) { return y; }
inline float* place_for(bf16*, float* buffer) { return buffer; }
inline void deliver(float*, const float*, std::int64_t) {}
inline void deliver(bf16* y, const float* buffer, std::int64_t n) {
  for_vectors<4>(0, n, [&](std::int64_t i, auto count) { store(y + i, load(buffer + i, count), count); });
}

// Prefetches n elements: the hardware does not recognise parts of rows as a stream.
template <typename T>
inline void fetch(const T* p, std::int64_t n) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < n; i += line) __builtin_prefetch(p + i, 0, 2);
}

// Calls visit(first, length) for the blocks of [begin, end); a single block if T is f32, which needs no buffers.
template <typename T = bf16, typename Visit>
inline void for_blocks(std::int64_t begin, std::int64_t end, const Visit& visit) {
  if constexpr (sizeof(T) == sizeof(float))
    visit(begin, end - begin);
  else
    for (std::int64_t i = begin; i < end; i += stage) visit(i, i + stage < end ? stage : end - i);
}

// Buffer for one block; whole vectors, so that a tail can be read past its end.
struct Block {
  alignas(64) float values[stage];
};

}  // namespace
}  // namespace assay::vector
