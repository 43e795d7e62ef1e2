// The memory suite's kernels behind their interface, and kernels not timed as bandwidth: chase, fill, compare.
#include "suites/memory/device_kernels.h"

#include "harness/device/cuda/check.h"
#include "harness/device/cuda/native.h"
#include "suites/memory/chase.h"
#include "suites/memory/cuda/loops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace assay::memory {

namespace {

constexpr unsigned plain_threads = 256;

unsigned plain_grid(std::size_t elements) {
  return static_cast<unsigned>(std::clamp<std::size_t>((elements + plain_threads - 1) / plain_threads, 1, 8192));
}

__global__ void __launch_bounds__(plain_threads) fill_array(double* data, int array, std::size_t elements) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride)
    data[i] = array == 0 || array == 1 ? input(array, i) : nan("");
}

__global__ void __launch_bounds__(plain_threads)
    compare_array(const double* data, Op op, int array, std::size_t elements, Wrong* wrong) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const double right = array == 0 || array == 1 ? input(array, i) : expected(op, i);
    if (data[i] == right) continue;
    const unsigned long long n = atomicAdd(reinterpret_cast<unsigned long long*>(&wrong->count), 1ull);
    if (n < Wrong::kept) wrong->place[n] = i;
  }
}

// Each load depends on the previous one: nothing else is in flight.
__global__ void __launch_bounds__(1) follow(const void** position, unsigned long long hops) {
  auto at = reinterpret_cast<unsigned long long>(*position);
  for (unsigned long long i = 0; i < hops; ++i) at = __ldcg(reinterpret_cast<const unsigned long long*>(at));
  *position = reinterpret_cast<const void*>(at);
}

class CudaKernels final : public DeviceKernels {
 public:
  std::vector<Variant> variants(Op op, bool in_cache) const override {
    using Access = Variant::Access;
    const bool sums = op == Op::read || op == Op::dot;
    struct Form {
      int threads, blocks;
    };
    // Striding grids fill every SM of 2,048 threads fully or by half. One sum per block favours few blocks.
    std::vector<Form> forms{{256, 8}, {512, 4}, {1024, 2}, {1024, 1}};
    if (!sums && !in_cache) forms.insert(forms.end(), {{256, 0}, {512, 0}, {1024, 0}});
    struct Flight {
      int unroll;
      Access access;
    };
    std::vector<Flight> flights{{2, Access::plain}, {4, Access::plain}, {4, Access::streaming}};
    if (sums && op == Op::read) flights.push_back({8, Access::plain});
    if (!sums) flights.insert(flights.end(), {{1, Access::plain}, {1, Access::streaming}});
    if (in_cache) flights = {{4, Access::second}};
    std::vector<Variant> all;
    for (const Form& form : forms)
      for (const Flight& flight : flights) all.push_back({form.threads, form.blocks, flight.unroll, flight.access});
    return all;
  }

  std::size_t scratch_bytes() const override { return 8 + max_partial_sums * sizeof(double); }

  void run(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, Stream& stream) override {
    const bool sums = op == Op::read || op == Op::dot;
    (sums ? run_sum : run_map)(op, variant, arrays, passes, cuda::native(stream));
  }

  void fill(double* data, int array, std::size_t elements, Stream& stream) override {
    cuda::launch(fill_array, plain_grid(elements), plain_threads, 0, cuda::native(stream), data, array, elements);
  }
  void compare(const double* data, Op op, int array, std::size_t elements, Wrong* wrong, Stream& stream) override {
    cuda::launch(compare_array, plain_grid(elements), plain_threads, 0, cuda::native(stream), data, op, array, elements,
                 wrong);
  }
  void chase(const void** position, std::uint64_t hops, Stream& stream) override {
    static_assert(offsetof(Line, next) == 0);
    cuda::launch(follow, 1, 1, 0, cuda::native(stream), position, hops);
  }
};

}  // namespace

}  // namespace assay::memory

extern "C" assay::memory::DeviceKernels* assay_cuda_memory_kernels() { return new assay::memory::CudaKernels; }
