// Looks up rows and sums rows.
#include "workloads/ops/cpu/kernels/embedding_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {
namespace {

using namespace vector;

template <typename Table, typename Y>
void look_up(const EmbeddingRows& rows, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = rows.width;
  for (std::int64_t token = begin; token < end; ++token) {
    const Table* word = static_cast<const Table*>(rows.table) + rows.ids[token] * n;
    const Table* position = rows.positions ? static_cast<const Table*>(rows.positions) + token % rows.seq * n : nullptr;
    const Table* type = rows.types ? static_cast<const Table*>(rows.types) + rows.type_ids[token] * n : nullptr;
    Y* y = static_cast<Y*>(rows.y) + token * n;
    // The hardware cannot predict the next row of the table, so prefetch it.
    const Table* next = static_cast<const Table*>(rows.table) + rows.ids[token + 1 < end ? token + 1 : token] * n;
    if (!position && !type)
      for_vectors<4>(0, n, [&](std::int64_t i, auto count) {
        __builtin_prefetch(next + i);
        store(y + i, load(word + i, count), count);
      });
    else
      for_vectors<2>(0, n, [&](std::int64_t i, auto count) {
        __builtin_prefetch(next + i);
        Float sum = load(word + i, count);
        if (position) sum += load(position + i, count);
        if (type) sum += load(type + i, count);
        store(y + i, sum, count);
      });
  }
}

// Long lists are summed in chunks of 64 rows, which limits rounding errors.
template <int height, typename In, typename Out, typename Count>
void sum_columns(const In* matrix, const RowList& list, std::int64_t width, Out* out, bool accumulate,
                 std::int64_t column, Count count) {
  constexpr std::int64_t chunk = 64;
  Float total[height] = {};
  if (accumulate)
    for (int u = 0; u < height; ++u) total[u] = load(out + column + u * lanes, count);
  for (std::int64_t first = 0; first < list.count; first += chunk) {
    Float part[height] = {};
    const std::int64_t last = first + chunk < list.count ? first + chunk : list.count;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row = list.order ? list.order[i] : list.first + i * list.stride;
      const In* from = matrix + row * width + column;
#pragma GCC unroll 4
      for (int u = 0; u < height; ++u) part[u] += load(from + u * lanes, count);
    }
    for (int u = 0; u < height; ++u) total[u] += part[u];
  }
  for (int u = 0; u < height; ++u) store(out + column + u * lanes, total[u], count);
}

template <typename In, typename Out>
void sum_rows(const void* matrix, const RowList& list, std::int64_t width, void* out, bool accumulate,
              std::int64_t begin, std::int64_t end) {
  const In* in = static_cast<const In*>(matrix);
  Out* to = static_cast<Out*>(out);
  std::int64_t column = begin;
  for (; column + 4 * lanes <= end; column += 4 * lanes)
    sum_columns<4>(in, list, width, to, accumulate, column, Full{});
  for_vectors(column, end,
              [&](std::int64_t c, auto count) { sum_columns<1>(in, list, width, to, accumulate, c, count); });
}

constexpr EmbeddingKernels embedding_kernels{
    {{look_up<float, float>, look_up<float, bf16>}, {look_up<bf16, float>, look_up<bf16, bf16>}},
    {{sum_rows<float, float>, sum_rows<float, bf16>}, {sum_rows<bf16, float>, sum_rows<bf16, bf16>}}};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::EmbeddingKernels
    assay::cpu::KernelsFor<assay::ops::EmbeddingKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::embedding_kernels;
