// Reads both arrays twice: for the root mean square of what is wanted, on which an element's limit depends, then for
// the elements. Differences of large arrays are summed in double.
#include "workloads/ops/cuda/agreement.h"

#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/cuda_op.h"

#include <cmath>
#include <limits>
#include <vector>

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr std::int64_t elements_per_thread = 16, max_blocks = 1024;

// Per block or, added up, of whole arrays.
struct Comparison {
  double want_squares = 0;        // of finite elements
  double difference_squares = 0;  // NaN if only one of two elements is
  double wrong = 0;               // elements beyond the limit
};

template <typename T>
__global__ void __launch_bounds__(threads)
    compare_arrays(const T* got, const T* want, std::int64_t count, double relative, double absolute, Comparison* to) {
  __shared__ double scratch[warp_threads];
  double want_squares = 0, difference_squares = 0, wrong = 0;
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += all) {
    const auto x = static_cast<double>(widen(got[i])), y = static_cast<double>(widen(want[i]));
    if (isfinite(y)) want_squares = fma(y, y, want_squares);
    if (x == y || (isnan(x) && isnan(y))) continue;  // also infinities
    const double off = x - y;
    difference_squares = fma(off, off, difference_squares);
    if (!(fabs(off) <= fma(relative, fabs(y), absolute))) wrong += 1;
  }
  want_squares = block_sum(want_squares, scratch);
  difference_squares = block_sum(difference_squares, scratch);
  wrong = block_sum(wrong, scratch);
  if (threadIdx.x == 0) to[blockIdx.x] = {want_squares, difference_squares, wrong};
}

}  // namespace

bool agree(Device& device, Stream& stream, const void* got, const void* want, DType dtype, std::int64_t count,
           const Tolerance& tolerance) {
  const unsigned blocks = blocks_for(count, threads * elements_per_thread, max_blocks);
  const Buffer parts = device.allocate(blocks * sizeof(Comparison));
  const auto compared = [&](double relative, double absolute) {
    with_type(dtype, [&]<typename T>() {
      launch(compare_arrays<T>, blocks, threads, 0, native(stream), static_cast<const T*>(got),
             static_cast<const T*>(want), count, relative, absolute, parts.as<Comparison>());
    });
    std::vector<Comparison> all(blocks);
    device.copy(all.data(), parts.data(), parts.bytes(), stream);
    stream.synchronize();
    Comparison sum;
    for (const Comparison& part : all) {
      sum.want_squares += part.want_squares;
      sum.difference_squares += part.difference_squares;
      sum.wrong += part.wrong;
    }
    return sum;
  };
  const Comparison whole = compared(0, std::numeric_limits<double>::infinity());
  const double root = std::sqrt(static_cast<double>(count)), norm = std::sqrt(whole.want_squares);
  if (!(std::sqrt(whole.difference_squares) <= tolerance.relative_l2 * norm + tolerance.absolute * root)) return false;
  return compared(2 * tolerance.element_relative, tolerance.element_scale * norm / root + 8 * tolerance.absolute)
             .wrong == 0;
}

}  // namespace assay::ops
