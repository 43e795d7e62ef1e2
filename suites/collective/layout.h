// Counts, buffers and bandwidth factors of a collective of S bytes, by nccl-tests' conventions.
#pragma once

#include "harness/core/dtype.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace assay::collective {

enum class Op { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv, all_to_all_v };
constexpr auto words(Op) {
  return std::to_array<std::string_view>(
      {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv", "all_to_all_v"});
}
inline constexpr int op_count = static_cast<int>(words(Op{}).size());

// In elements, but for `bytes`: S rounded down to whole elements of an all-reduce, broadcast or send-recv, and to whole
// blocks of every rank for the others.
struct Layout {
  std::size_t count = 0;  // the call's argument: of one block if ranks have blocks; of a unit if they are skewed
  std::size_t send = 0;
  std::size_t receive = 0;  // of the busiest rank
  std::size_t bytes = 0;
};
Layout layout_of(Op op, std::size_t bytes, DType dtype, int ranks);

// all_to_all_v is as skewed as tokens on their way to the experts of a mixture: every rank sends 2m-1 units of `count`
// elements to rank 0, two fewer to each next one, down to 1 unit to rank m-1, and so on for each further m = min(n, 8)
// ranks. So the busiest ranks get 2 - 1/m times the mean, and the idlest 1/m of it. S bytes are what a busiest rank
// gets, so that algbw and busbw are its own.
std::size_t skewed_units(int to, int ranks);

// busbw = algbw x factor: all-reduce 2(n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n; broadcast, send-recv 1
// (nccl-tests, doc/PERFORMANCE.md). Absent for one rank.
std::optional<double> bus_factor(Op op, int ranks);

// all_to_all, all_to_all_v and send_recv have no in-place form.
bool has_in_place(Op op);
bool reduces(Op op);

}  // namespace assay::collective
