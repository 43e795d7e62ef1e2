// Packing by transposing in registers, or by interleaving two rows.
#include "workloads/ops/cpu/kernels/pack_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/kernels/pairs.h"
#include "workloads/ops/cpu/kernels/transpose.h"

namespace assay::ops {
namespace {

using namespace vector;
using Index = std::int64_t;

inline Index smaller(Index a, Index b) { return a < b ? a : b; }

// A 32-bit unit of a panel: an f32, or two bf16 of neighbouring rows.
struct Singles {
  using Unit = float;
  static constexpr Index depth = 1;
  static void convert(const float* from, Unit* to) { store(to, load(from)); }
};
struct Pairs {
  using Unit = std::uint32_t;
  static constexpr Index depth = 2;
  static void convert(const float* from, Unit* to) {
    store(reinterpret_cast<bf16*>(to), load(from));
    store(reinterpret_cast<bf16*>(to) + lanes, load(from + lanes));
  }
};

template <typename Kind>
void across(const PackedPanels& p, Index begin, Index end) {
  using Unit = typename Kind::Unit;
  constexpr Index terms = lanes * Kind::depth;  // rows (k) in a square of units
  constexpr Index granule = PackKernels::granule;
  const Index unit_rows = p.rows / Kind::depth;
  for (Index step = begin; step < end; ++step) {
    const Index first = step * granule;
    Unit* panel = static_cast<Unit*>(p.to) + first / p.width * unit_rows * p.width + first % p.width;
    for (Index k = 0; k < p.rows; k += terms)
      for (Index n = first; n < first + granule; n += lanes) {
        alignas(64) float source[terms];
        alignas(64) Unit square[lanes * lanes], transposed[lanes * lanes];
        const Index whole = smaller(terms, p.k - k);
        for (Index r = 0; r < lanes; ++r) {
          const float* from = p.from + (n + r) * p.k + k;
          if (n + r >= p.n || whole < terms) {
            for (Index i = 0; i < terms; ++i) source[i] = n + r < p.n && i < whole ? from[i] : 0.0f;
            from = source;
          }
          Kind::convert(from, square + r * lanes);
        }
        transpose(square, lanes, lanes, lanes, transposed, lanes);
        const Index height = smaller(lanes, unit_rows - k / Kind::depth);
        for (Index i = 0; i < height; ++i)
          __builtin_memcpy(panel + (k / Kind::depth + i) * p.width + (n - first), transposed + i * lanes,
                           sizeof(Float));
      }
  }
}

void along_bf16(const PackedPanels& p, Index begin, Index end) {
  for (Index k = begin * PackKernels::tall; k < smaller(p.rows, end * PackKernels::tall); k += 2) {
    const float* lower = p.from + k * p.n;
    const bool has_lower = k < p.k, has_upper = k + 1 < p.k;
    auto* row = static_cast<std::uint32_t*>(p.to) + k / 2 * p.width;
    for (Index first = 0; first < p.n; first += p.width, row += p.rows / 2 * p.width)
      for (Index i = 0; i < p.width; i += lanes) {
        const Index n = first + i, left = p.n - n;
        Float l = {}, u = {};
        if (left >= lanes) {
          if (has_lower) l = load(lower + n);
          if (has_upper) u = load(lower + p.n + n);
        } else if (left > 0) {
          if (has_lower) l = load(lower + n, static_cast<int>(left));
          if (has_upper) u = load(lower + p.n + n, static_cast<int>(left));
        }
        const Bits pair = paired(l, u);
        __builtin_memcpy(row + i, &pair, sizeof pair);
      }
  }
}

constexpr PackKernels pack_kernels{across<Singles>, across<Pairs>, along_bf16};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::PackKernels assay::cpu::KernelsFor<assay::ops::PackKernels, assay::cpu::Isa::ASSAY_ISA>::table =
    assay::ops::pack_kernels;
