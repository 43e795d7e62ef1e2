// Copy, mul, add, triad and dot on arrays of doubles like BabelStream: blocks of 1024 threads, one element per thread
// or a grid-stride loop; dot sums in shared memory and finally on the host.
//   babelstream copy|mul|add|triad|dot BYTES [PASSES]
// BYTES is the size of one array. Ten passes (one for dot) are timed together by events, to hide launches; the first
// quarter, while clocks ramp up, is dropped. Prints one JSON line: `value` is the median of the faster form, `best` its
// fastest sample, which is what BabelStream reports. Counts as it does: 2N bytes for copy, mul and dot, 3N for add and
// triad. Verifies the result; if it is wrong, exit code 1.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "babelstream: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

constexpr int block = 1024;
constexpr int max_passes_per_sample = 10;
constexpr double scalar = 0.4, start_a = 0.1, start_b = 0.2, start_c = 0.3;

// Calls body for a thread's elements: one, or every (gridDim.x * blockDim.x)-th.
template <typename Body>
__device__ void for_elements(long n, Body body) {
  const long step = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}

__global__ void fill(double* a, double* b, double* c, long n) {
  for_elements(n, [=](long i) { a[i] = start_a, b[i] = start_b, c[i] = start_c; });
}
__global__ void copy(const double* a, double* c, long n) {
  for_elements(n, [=](long i) { c[i] = a[i]; });
}
__global__ void mul(double* b, const double* c, long n) {
  for_elements(n, [=](long i) { b[i] = scalar * c[i]; });
}
__global__ void add(const double* a, const double* b, double* c, long n) {
  for_elements(n, [=](long i) { c[i] = a[i] + b[i]; });
}
__global__ void triad(double* a, const double* b, const double* c, long n) {
  for_elements(n, [=](long i) { a[i] = b[i] + scalar * c[i]; });
}
__global__ void dot(const double* a, const double* b, double* sums, long n) {
  __shared__ double partial[block];
  double sum = 0;
  for_elements(n, [&](long i) { sum += a[i] * b[i]; });
  partial[threadIdx.x] = sum;
  for (int half = block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < static_cast<unsigned>(half)) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

struct Arrays {
  double *a, *b, *c, *sums;
  std::vector<double> host_sums;
  long n;
};

struct Form {
  const char* name;
  unsigned grid;
};

// clang-format off
// One pass; returns the result of dot.
double pass(const std::string& kernel, Arrays& x, unsigned grid) {
  if (kernel == "copy") copy<<<grid, block>>>(x.a, x.c, x.n);
  if (kernel == "mul") mul<<<grid, block>>>(x.b, x.c, x.n);
  if (kernel == "add") add<<<grid, block>>>(x.a, x.b, x.c, x.n);
  if (kernel == "triad") triad<<<grid, block>>>(x.a, x.b, x.c, x.n);
  if (kernel == "dot") dot<<<grid, block>>>(x.a, x.b, x.sums, x.n);
  // clang-format on
  check(cudaGetLastError(), "launch");
  if (kernel != "dot") return 0;
  check(cudaMemcpy(x.host_sums.data(), x.sums, grid * sizeof(double), cudaMemcpyDeviceToHost), "sums");
  double sum = 0;
  for (unsigned i = 0; i < grid; ++i) sum += x.host_sums[i];
  return sum;
}

// The value of every element after any number of passes of one kernel over initialised arrays.
struct Expected {
  double a = start_a, b = start_b, c = start_c;
};
Expected expected(const std::string& kernel) {
  Expected w;
  if (kernel == "copy") w.c = w.a;
  if (kernel == "mul") w.b = scalar * w.c;
  if (kernel == "add") w.c = w.a + w.b;
  if (kernel == "triad") w.a = w.b + scalar * w.c;
  return w;
}

bool right(const char* name, const double* device, long n, double want, std::vector<double>& host) {
  check(cudaMemcpy(host.data(), device, static_cast<std::size_t>(n) * sizeof(double), cudaMemcpyDeviceToHost), "read");
  const long wrong = std::count_if(host.begin(), host.end(), [&](double x) { return !(std::fabs(x - want) < 1e-14); });
  if (wrong > 0) std::fprintf(stderr, "babelstream: %ld of %ld elements of %s are not %g\n", wrong, n, name, want);
  return wrong == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> kernels = {"copy", "mul", "add", "triad", "dot"};
  if (argc < 3 || std::find(kernels.begin(), kernels.end(), argv[1]) == kernels.end()) {
    std::fprintf(stderr, "babelstream copy|mul|add|triad|dot BYTES [PASSES]\n");
    return 2;
  }
  const std::string kernel = argv[1];
  Arrays x{};
  x.n = std::atol(argv[2]) / static_cast<long>(sizeof(double)) / block * block;
  const int passes = argc > 3 ? std::atoi(argv[3]) : 400;
  if (x.n < block || passes < 2) {
    std::fprintf(stderr, "babelstream: at least %zu bytes and 2 passes\n", block * sizeof(double));
    return 2;
  }
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "device");
  const std::size_t bytes = static_cast<std::size_t>(x.n) * sizeof(double);
  const auto blocks = static_cast<unsigned>(x.n / block),
             loops = 4u * static_cast<unsigned>(device.multiProcessorCount);
  for (double** array : {&x.a, &x.b, &x.c}) check(cudaMalloc(array, bytes), "memory");
  check(cudaMalloc(&x.sums, std::max(blocks, loops) * sizeof(double)), "memory");
  x.host_sums.resize(std::max(blocks, loops));
  // clang-format off
  fill<<<blocks, block>>>(x.a, x.b, x.c, x.n);
  // clang-format on
  check(cudaDeviceSynchronize(), "fill");
  cudaEvent_t from, to;
  check(cudaEventCreate(&from), "event");
  check(cudaEventCreate(&to), "event");

  const double moved = (kernel == "add" || kernel == "triad" ? 3.0 : 2.0) * static_cast<double>(bytes);
  const int per_sample = kernel == "dot" ? 1 : std::min(max_passes_per_sample, passes / 2),
            samples = passes / per_sample;
  double best_median = 0, best_pass = 0, value = 0;
  const char* best_form = "";
  for (const Form form : {Form{"one element per thread", blocks}, Form{"grid-stride", loops}}) {
    if (kernel == "dot" && form.grid == blocks) continue;  // BabelStream's dot is always a loop
    std::vector<double> seconds;
    for (int i = 0; i < samples; ++i) {
      check(cudaEventRecord(from), "event");
      for (int n = 0; n < per_sample; ++n) value = pass(kernel, x, form.grid);
      check(cudaEventRecord(to), "event");
      check(cudaEventSynchronize(to), "pass");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, from, to), "time");
      if (i >= (samples + 3) / 4) seconds.push_back(1e-3 * static_cast<double>(milliseconds) / per_sample);
    }
    std::sort(seconds.begin(), seconds.end());
    const double median = moved / seconds[seconds.size() / 2];
    if (median <= best_median) continue;
    best_median = median;
    best_pass = moved / seconds.front();
    best_form = form.name;
  }

  const Expected w = expected(kernel);
  std::vector<double> host(static_cast<std::size_t>(x.n));
  bool correct = right("a", x.a, x.n, w.a, host) && right("b", x.b, x.n, w.b, host) && right("c", x.c, x.n, w.c, host);
  if (const double sum = start_a * start_b * static_cast<double>(x.n);
      kernel == "dot" && !(std::fabs(value - sum) < 1e-8 * sum)) {
    std::fprintf(stderr, "babelstream: the dot product is %.17g, not %.17g\n", value, sum);
    correct = false;
  }
  if (!correct) return 1;
  std::printf(
      "{\"value\": %.6e, \"unit\": \"B/s\", \"better\": \"higher\", \"best\": %.6e, \"form\": \"%s\", \"bytes\": %zu, "
      "\"passes\": %d, \"device\": \"%s\"}\n",
      best_median, best_pass, best_form, bytes, passes, device.name);
  return 0;
}
