// The memory-bound ops of the CPU backend, each timed alone on arrays larger than the caches, and relative to a triad.
//   ops NAME f32|bf16 [THREADS]   one JSON line for run.py: bytes/s, counting what the op must read and write
//   ops all f32|bf16 [THREADS]    a table of every op and the triad's rate
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/random.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <vector>

namespace {

using namespace assay;
using namespace assay::ops;

constexpr std::int64_t rows = 16384;
constexpr std::int64_t columns = 768;
constexpr std::int64_t vocabulary = 50257;
constexpr std::int64_t parameters = std::int64_t{1} << 25;

struct Timed {
  double bytes = 0;  // read and written, as STREAM counts
  std::function<void()> run;
};

class Bench {
 public:
  Bench(DType dtype, int threads) : dtype_(dtype), team_(threads) {}

  const std::vector<std::string> names{"triad",
                                       "layer_forward",
                                       "layer_residual_forward",
                                       "layer_backward",
                                       "rms_forward",
                                       "rms_backward",
                                       "gelu_tanh",
                                       "gelu_tanh_backward",
                                       "gelu_erf",
                                       "gelu_erf_backward",
                                       "silu_gate",
                                       "silu_gate_backward",
                                       "embedding",
                                       "embedding_backward",
                                       "add",
                                       "cast",
                                       "adamw",
                                       "sgd",
                                       "gradient_norm"};

  Timed make(const std::string& name) {
    const bool backward = name.ends_with("_backward");
    if (name == "triad") return triad();
    if (name.starts_with("layer") || name.starts_with("rms")) return norm(name, backward);
    if (name.starts_with("gelu") || name.starts_with("silu")) return activation(name, backward);
    if (name.starts_with("embedding")) return embedding(backward);
    if (name == "add" || name == "cast") return elementwise(name);
    if (name == "adamw" || name == "sgd") return optimizer(name);
    if (name == "gradient_norm") return gradient_norm();
    throw UsageError("no op is called " + name);
  }

 private:
  void* array(DType dtype, std::int64_t count, bool positive = false) {
    buffers_.push_back(device_->allocate(static_cast<std::size_t>(count) * size_of(dtype)));
    void* data = buffers_.back().data();
    team_.run([&](int thread) {
      const std::int64_t begin = count * thread / team_.size(), end = count * (thread + 1) / team_.size();
      fill_random(data, dtype, begin, end, Rng(1, std::to_string(buffers_.size())));
      for (std::int64_t i = begin; positive && i < end; ++i)
        static_cast<float*>(data)[i] *= static_cast<float*>(data)[i];
    });
    return data;
  }
  void* array(std::int64_t count) { return array(dtype_, count); }
  double size() const { return static_cast<double>(size_of(dtype_)); }

  template <typename O, typename Args>
  Timed timed(Made<O> made, Args args, double bytes) {
    if (!made) throw Error(made.reason());
    std::shared_ptr<O> op = made.take();
    buffers_.push_back(device_->allocate(std::max<std::size_t>(op->workspace_bytes(), 64)));
    args.workspace = buffers_.back().data();
    return {bytes, [this, op, args] { op->run(*stream_, args); }};
  }

  Timed triad() {
    auto* a = static_cast<double*>(array(DType::f64, parameters / 2));
    auto* b = static_cast<double*>(array(DType::f64, parameters / 2));
    auto* c = static_cast<double*>(array(DType::f64, parameters / 2));
    return {3.0 * 8 * parameters / 2, [this, a, b, c] {
              team_.run([&](int thread) {
                const std::int64_t n = parameters / 2;
                for (std::int64_t i = n * thread / team_.size(); i < n * (thread + 1) / team_.size(); ++i)
                  a[i] = b[i] + 3.0 * c[i];
              });
            }};
  }

  Timed norm(const std::string& name, bool backward) {
    const bool residual = name.find("residual") != std::string::npos;
    const NormDesc desc{.kind = name.starts_with("layer") ? NormKind::layer : NormKind::rms,
                        .rows = rows,
                        .columns = columns,
                        .dtype = dtype_,
                        .residual = residual};
    const double count = static_cast<double>(rows * columns);
    void* weight = array(DType::f32, columns);
    void* bias = array(DType::f32, columns);
    void* mean = array(DType::f32, rows);
    void* inverse = array(DType::f32, rows);
    if (backward)
      return timed(backend_->norm_backward(desc),
                   NormBackward::Args{.dy = array(rows * columns),
                                      .sum = array(rows * columns),
                                      .weight = weight,
                                      .saved_mean = mean,
                                      .saved_inverse_deviation = inverse,
                                      .dx = array(rows * columns),
                                      .dweight = array(DType::f32, columns),
                                      .dbias = bias},
                   3 * size() * count);
    return timed(backend_->norm_forward(desc),
                 NormForward::Args{.x = array(rows * columns),
                                   .residual = residual ? array(rows * columns) : nullptr,
                                   .sum = residual ? array(rows * columns) : nullptr,
                                   .weight = weight,
                                   .bias = bias,
                                   .y = array(rows * columns),
                                   .saved_mean = mean,
                                   .saved_inverse_deviation = inverse},
                 (residual ? 4 : 2) * size() * count);
  }

  Timed activation(const std::string& name, bool backward) {
    const bool gate = name.starts_with("silu");
    const ActivationDesc desc{.kind = gate                            ? ActivationKind::silu_gate
                                      : name.starts_with("gelu_tanh") ? ActivationKind::gelu_tanh
                                                                      : ActivationKind::gelu_erf,
                              .rows = rows,
                              .columns = columns,
                              .dtype = dtype_};
    const double count = static_cast<double>(rows * columns);
    const std::int64_t wide = gate ? 2 * columns : columns;
    void* x = array(rows * wide);
    if (backward)
      return timed(backend_->activation_backward(desc),
                   ActivationBackward::Args{.x = x, .dy = array(rows * columns), .dx = array(rows * wide)},
                   (gate ? 5 : 3) * size() * count);
    return timed(backend_->activation_forward(desc), ActivationForward::Args{.x = x, .y = array(rows * columns)},
                 (gate ? 3 : 2) * size() * count);
  }

  Timed embedding(bool backward) {
    const EmbeddingDesc desc{.batch = rows / 512,
                             .seq = 512,
                             .vocabulary = vocabulary,
                             .width = columns,
                             .dtype = dtype_,
                             .accumulate_table = true};
    buffers_.push_back(device_->allocate(sizeof(std::int32_t) * rows));
    auto* ids = buffers_.back().as<std::int32_t>();
    const Rng rng(1, "ids");
    for (std::int64_t i = 0; i < rows; ++i)
      ids[i] = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(i), vocabulary));
    const double count = static_cast<double>(rows * columns);
    void* table = array(DType::f32, vocabulary * columns);
    void* y = array(rows * columns);
    if (backward)
      return timed(backend_->embedding_backward(desc), EmbeddingBackward::Args{.ids = ids, .dy = y, .dtable = table},
                   count * (size() + 8));
    return timed(backend_->embedding_forward(desc), EmbeddingForward::Args{.ids = ids, .table = table, .y = y},
                 count * (4 + size()));
  }

  Timed elementwise(const std::string& name) {
    const bool add = name == "add";
    const DType in = add ? dtype_ : DType::f32;
    const DType out = add ? dtype_ : DType::bf16;
    const ElementwiseDesc desc{add ? ElementwiseKind::add : ElementwiseKind::cast, parameters, in, out};
    return timed(
        backend_->elementwise(desc),
        Elementwise::Args{
            .a = array(in, parameters), .b = add ? array(in, parameters) : nullptr, .out = array(out, parameters)},
        static_cast<double>(parameters) * (add ? 3 * size() : 6));
  }

  Timed optimizer(const std::string& name) {
    const bool adamw = name == "adamw";
    state_ = {.step = 3, .learning_rate = 1e-5f};
    const OptimizerDesc desc{.kind = adamw ? OptimizerKind::adamw : OptimizerKind::sgd,
                             .count = parameters,
                             .segments = {{0, parameters, 0.1}},
                             .parameter = dtype_};
    const bool copy = dtype_ != DType::f32;
    return timed(backend_->optimizer(desc),
                 Optimizer::Args{.state = &state_,
                                 .master = array(DType::f32, parameters),
                                 .gradient = array(DType::f32, parameters),
                                 .moment1 = array(DType::f32, parameters),
                                 .moment2 = adamw ? array(DType::f32, parameters, true) : nullptr,
                                 .parameter = copy ? array(parameters) : nullptr},
                 static_cast<double>(parameters) * ((adamw ? 28 : 20) + (copy ? 2 : 0)));
  }

  Timed gradient_norm() {
    return timed(backend_->gradient_norm({parameters, dtype_}),
                 GradientNorm::Args{.gradient = array(parameters), .state = &state_}, size() * parameters);
  }

  DType dtype_;
  std::unique_ptr<Device> device_ = make_device(DeviceKind::cpu, 0);
  cpu::Team team_;
  std::unique_ptr<Stream> stream_ = device_->make_stream();
  std::shared_ptr<Backend> backend_ = backend_for(*device_);
  std::deque<Buffer> buffers_;
  StepState state_;
};

// CPU time for a single thread, which reduces the influence of other processes; else wall time.
double seconds_of(const Timed& timed) {
  const clockid_t clock = omp_get_max_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double begin = seconds_on(clock);
  timed.run();
  return seconds_on(clock) - begin;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Median and best rate over at least 15 passes and one second, and the median ratio to a triad run after each pass.
struct Rate {
  double median = 0;
  double best = 0;
  double of_triad = 0;
};
Rate rate(const Timed& timed, const Timed& triad) {
  std::vector<double> rates, ratios;
  for (int warm = 0; warm < 2; ++warm) timed.run();
  const auto start = std::chrono::steady_clock::now();
  while (rates.size() < 15 || std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
    rates.push_back(timed.bytes / seconds_of(timed));
    ratios.push_back(rates.back() / (triad.bytes / seconds_of(triad)));
  }
  return {median(rates), std::ranges::max(rates), median(ratios)};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4) throw UsageError("ops NAME|all f32|bf16 [THREADS]");
  const int threads = cpu::resolve_threads(argc == 4 ? argv[3] : "all");
  const std::string name = argv[1];
  const DType dtype = argv[2] == std::string("bf16") ? DType::bf16 : DType::f32;
  if (name != "all") {
    Bench bench(dtype, threads);
    const Timed op = bench.make(name), triad = bench.make("triad");
    const Rate found = rate(op, triad);
    fmt::print("{{\"value\": {}, \"unit\": \"B/s\", \"better\": \"higher\", \"best\": {}, \"of_triad\": {:.3f}}}\n",
               found.median, found.best, found.of_triad);
    return 0;
  }
  fmt::print("{:24} {:>6} {:>6} GB/s, of triad\n", name_of(dtype), "median", "best");
  for (const std::string& each : Bench(dtype, threads).names) {
    Bench bench(dtype, threads);
    const Timed op = bench.make(each), triad = bench.make("triad");
    const Rate found = rate(op, triad);
    fmt::print("{:24} {:6.2f} {:6.2f} {:5.2f}\n", each, found.median / 1e9, found.best / 1e9, found.of_triad);
    std::fflush(stdout);
  }
  return 0;
} catch (const assay::Error& error) {
  fmt::print(stderr, "ops: {}\n", error.what());
  return static_cast<int>(error.code());
}
