// Counts, buffers and bandwidth factors of a collective of S bytes, by nccl-tests' conventions.
#pragma once

#include "harness/core/dtype.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace assay::collective {

enum class Op { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv };
constexpr auto words(Op) {
  return std::to_array<std::string_view>(
      {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"});
}
inline constexpr int op_count = static_cast<int>(words(Op{}).size());

// In elements, but for `bytes`: S rounded down to whole elements of an all-reduce, broadcast or send-recv, and to whole
// blocks of every rank for the others.
struct Layout {
  std::size_t count = 0;  // the call's argument: of one block if ranks have blocks
  std::size_t send = 0;
  std::size_t receive = 0;
  std::size_t bytes = 0;
};
Layout layout_of(Op op, std::size_t bytes, DType dtype, int ranks);

// busbw = algbw x factor: all-reduce 2(n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n; broadcast, send-recv 1
// (nccl-tests, doc/PERFORMANCE.md). Absent for one rank.
std::optional<double> bus_factor(Op op, int ranks);

// all_to_all and send_recv have no in-place form.
bool has_in_place(Op op);
bool reduces(Op op);

}  // namespace assay::collective
