#include "suites/collective/layout.h"

#include <algorithm>

namespace assay::collective {

std::size_t skewed_units(int to, int ranks) {
  const int m = std::min(ranks, 8);
  return static_cast<std::size_t>(2 * (m - to % m) - 1);
}

Layout layout_of(Op op, std::size_t bytes, DType dtype, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t elements = bytes / size_of(dtype);
  Layout layout;
  switch (op) {
    case Op::all_reduce:
    case Op::broadcast:
    case Op::send_recv: layout = {elements, elements, elements, 0}; break;
    case Op::all_gather: layout = {elements / n, elements / n, elements / n * n, 0}; break;
    case Op::reduce_scatter: layout = {elements / n, elements / n * n, elements / n, 0}; break;
    case Op::all_to_all: layout = {elements / n, elements / n * n, elements / n * n, 0}; break;
    case Op::all_to_all_v: {
      const std::size_t most = n * skewed_units(0, ranks), unit = elements / most;
      std::size_t units = 0;
      for (int to = 0; to < ranks; ++to) units += skewed_units(to, ranks);
      layout = {unit, unit * units, unit * most, 0};
      break;
    }
  }
  layout.bytes = (layout.send > layout.receive ? layout.send : layout.receive) * size_of(dtype);
  return layout;
}

std::optional<double> bus_factor(Op op, int ranks) {
  if (ranks < 2) return std::nullopt;
  const double fraction = (ranks - 1.0) / ranks;
  switch (op) {
    case Op::all_reduce: return 2 * fraction;
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::all_to_all_v: return fraction;
    case Op::broadcast:
    case Op::send_recv: break;
  }
  return 1.0;
}

bool has_in_place(Op op) { return op != Op::all_to_all && op != Op::all_to_all_v && op != Op::send_recv; }

bool reduces(Op op) { return op == Op::all_reduce || op == Op::reduce_scatter; }

}  // namespace assay::collective
