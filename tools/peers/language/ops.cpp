// Rates of the ops of language models on the CPU, through Assay's interface:
//   language_ops [--threads N] [--seconds S] [--cpu] DTYPE NAME...
// A name includes everything below it: linear/... and head/... are GPT-2-124m's products on 2,048 tokens, attention/...
// its attention on 4 x 512 tokens, tokens/... other work per token. Prints a table; the last line is JSON with the rate
// of all ops together. `--cpu` counts CPU time per thread instead of wall time, for a machine in shared use; with
// several threads set OMP_WAIT_POLICY=passive, so that waiting is not counted.
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/device/cpu/team.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace assay {
namespace {

using namespace ops;

struct Timed {
  std::string name;
  std::string implementation;
  double flops = 0;  // of one run
  std::function<void()> run;
  std::vector<double> seconds;
};

class Bench {
 public:
  Bench(DType dtype, int threads) : dtype_(dtype), team_(threads), device_(make_device(DeviceKind::cpu, 0)) {
    stream_ = device_->make_stream();
    backend_ = backend_for(*device_);
  }

  void* normal(std::int64_t count, DType dtype) {
    void* data = space(static_cast<std::size_t>(count) * size_of(dtype));
    fill_random(data, dtype, 0, count, Rng(buffers_.size(), "bench"));
    return data;
  }
  void* normal(std::int64_t count) { return normal(count, dtype_); }
  void* space(std::size_t bytes) {
    buffers_.push_back(device_->allocate(std::max<std::size_t>(bytes, 64)));
    std::memset(buffers_.back().data(), 0, buffers_.back().bytes());
    return buffers_.back().data();
  }
  void* space(std::int64_t count) { return space(static_cast<std::size_t>(count) * size_of(dtype_)); }

  template <typename Op, typename Args>
  void add(const std::string& name, double flops, Made<Op> made, Args args) {
    if (!made) throw UsageError(fmt::format("{}: {}", name, made.reason()));
    auto op = std::shared_ptr<Op>(made.take());
    args.workspace = space(op->workspace_bytes());
    timed_.push_back({name, op->implementation(), flops, [this, op, args] { op->run(*stream_, args); }, {}});
  }

  void product(const std::string& name, MatmulDesc d) {
    d.a = d.b = dtype_;
    if (d.out == DType::f64) d.out = dtype_;
    auto made = backend_->make<Matmul>(d);
    if (!made) throw UsageError(fmt::format("{}: {}", name, made.reason()));
    auto op = std::shared_ptr<Matmul>(made.take());
    MatmulArgs args;
    args.a = normal(d.m * d.k);
    args.b = normal(d.k * d.n, d.form == WeightForm::plain ? d.b : d.pack_from);
    if (op->packed_bytes() > 0) {
      void* packed = space(op->packed_bytes());
      const void* from = args.b;
      timed_.push_back({name + " pack", "", 0, [this, op, from, packed] { op->pack(*stream_, from, packed); }, {}});
      timed_.back().run();
      args.b = packed;
    }
    args.out = space(static_cast<std::size_t>(d.m * d.n) * size_of(d.out));
    args.bias = normal(d.n, DType::f32);
    args.aux = normal(d.m * d.n, d.out);
    args.row_sums = space(static_cast<std::size_t>(d.m) * 4);
    args.workspace = space(op->workspace_bytes());
    timed_.push_back({name,
                      op->implementation(),
                      2.0 * static_cast<double>(d.m) * static_cast<double>(d.n) * static_cast<double>(d.k),
                      [this, op, args] { op->run(*stream_, args); },
                      {}});
  }

  void linear(const std::string& name, std::int64_t rows, std::int64_t in, std::int64_t out, Epilogue forward,
              Epilogue backward, bool bias, bool add) {
    const DType own = DType::f64;  // the dtype under test
    MatmulDesc f{.m = rows, .n = out, .k = in, .out = own, .transpose_b = true, .form = WeightForm::packed};
    f.bias = bias;
    f.epilogue = forward;
    product(name + "/forward", f);
    MatmulDesc d{.m = rows, .n = in, .k = out, .out = own, .form = WeightForm::packed, .epilogue = backward};
    product(name + "/data", d);
    MatmulDesc w{.m = out, .n = in, .k = rows, .out = DType::f32, .transpose_a = true, .row_sums = bias};
    product(name + "/weights", w);
    if (!add) return;
    w.accumulate = true;
    product(name + "/weights_added", w);
  }

  void attention(std::int64_t batch, std::int64_t seq, std::int64_t heads, std::int64_t dim, bool causal) {
    const std::int64_t width = heads * dim, tokens = batch * seq;
    AttentionDesc d{.batch = batch, .seq = seq, .heads = heads, .kv_heads = heads, .head_dim = dim, .causal = causal};
    d.q_stride = d.k_stride = d.v_stride = 3 * width;
    d.dtype = dtype_;
    const auto at = [&](void* data, std::int64_t elements) {
      return static_cast<char*>(data) + static_cast<std::size_t>(elements) * size_of(dtype_);
    };
    void* qkv = normal(tokens * 3 * width);
    void* dqkv = space(tokens * 3 * width);
    void* out = space(tokens * width);
    void* sums = space(static_cast<std::size_t>(batch * heads * seq) * 4);
    const double product = (causal ? 1.0 : 2.0) * static_cast<double>(batch * heads * seq * seq * dim);
    const std::string name = fmt::format("attention/{}x{}x{}x{}", batch, heads, seq, dim);
    add(name + "/forward", 2 * product, backend_->make<AttentionForward>(d),
        AttentionForward::Args{
            .q = qkv, .k = at(qkv, width), .v = at(qkv, 2 * width), .out = out, .log_sum_exp = sums});
    timed_.back().run();
    add(name + "/backward", 5 * product, backend_->make<AttentionBackward>(d),
        AttentionBackward::Args{.q = qkv,
                                .k = at(qkv, width),
                                .v = at(qkv, 2 * width),
                                .out = out,
                                .dout = normal(tokens * width),
                                .log_sum_exp = sums,
                                .dq = dqkv,
                                .dk = at(dqkv, width),
                                .dv = at(dqkv, 2 * width)});
  }

  void tokens(std::int64_t rows, std::int64_t classes) {
    CrossEntropyDesc d{.rows = rows, .classes = classes, .stride = classes, .dtype = dtype_};
    auto* targets = static_cast<std::int32_t*>(space(static_cast<std::size_t>(rows) * 4));
    for (std::int64_t i = 0; i < rows; ++i) targets[i] = static_cast<std::int32_t>(i * 7919 % classes);
    auto* scale = static_cast<float*>(space(std::size_t{4}));
    *scale = 1.0f;
    add("tokens/cross_entropy", 0, backend_->make<CrossEntropy>(d),
        CrossEntropy::Args{.logits = normal(rows * classes),
                           .targets = targets,
                           .scale = scale,
                           .sums = static_cast<LossSums*>(space(sizeof(LossSums)))});
    RotaryDesc r{.batch = 4, .seq = 512, .heads = 24, .head_dim = 64, .stride = 3 * 768};
    r.dtype = dtype_;
    add("tokens/rotary", 0, backend_->make<Rotary>(r),
        Rotary::Args{
            .x = normal(2048 * 3 * 768), .cosine = normal(512 * 32, DType::f32), .sine = normal(512 * 32, DType::f32)});
  }

  // Cycles through the ops that `wanted` names for `seconds`; prints the table.
  void report(const std::vector<std::string>& wanted, double seconds, bool cpu_time) {
    std::erase_if(timed_, [&](const Timed& t) {
      return std::none_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
        return t.name == w || t.name.starts_with(w + " ") || t.name.starts_with(w.ends_with('/') ? w : w + "/");
      });
    });
    const clockid_t clock = cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    const double scale = cpu_time ? 1.0 / team_.size() : 1.0;
    team_.use();
    for (Timed& t : timed_) t.run();
    const double end = seconds_on(CLOCK_MONOTONIC) + seconds;
    if (timed_.empty()) throw UsageError("no such work: linear, head, attention, tokens");
    do {
      for (Timed& t : timed_) {
        const double start = seconds_on(clock);
        t.run();
        t.seconds.push_back((seconds_on(clock) - start) * scale);
      }
    } while (seconds_on(CLOCK_MONOTONIC) < end);
    double flops = 0, total = 0;
    for (Timed& t : timed_) {
      std::sort(t.seconds.begin(), t.seconds.end());
      const double median = t.seconds[t.seconds.size() / 2];
      fmt::print("{:34} {:28} best {:9.3f} ms {:8.1f} GFLOP/s   median {:9.3f} ms\n", t.name, t.implementation,
                 t.seconds[0] * 1e3, t.flops / t.seconds[0] / 1e9, median * 1e3);
      flops += t.flops;
      total += median;
    }
    fmt::print("{{\"value\": {}, \"unit\": \"FLOP/s\", \"better\": \"higher\"}}\n", flops / total);
  }

 private:
  DType dtype_;
  cpu::Team team_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Backend> backend_;
  std::deque<Buffer> buffers_;
  std::vector<Timed> timed_;
};

int run(std::vector<std::string> words) {
  int threads = cpu::resolve_threads("all");
  double seconds = 10;
  bool cpu_time = false;
  while (!words.empty() && words[0].starts_with("--")) {
    if (words[0] == "--cpu") {
      cpu_time = true;
      words.erase(words.begin());
      continue;
    }
    if (words.size() < 2) throw UsageError(words[0] + " takes a number");
    if (words[0] == "--seconds") seconds = std::stod(words[1]);
    if (words[0] == "--threads") threads = cpu::resolve_threads(words[1]);
    words.erase(words.begin(), words.begin() + 2);
  }
  const auto dtype = words.size() < 2 ? std::nullopt : dtype_from(words[0]);
  if (!dtype) throw UsageError("language_ops [--threads N] [--seconds S] [--cpu] DTYPE NAME...");
  words.erase(words.begin());
  const auto asked = [&](const std::string& part) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& w) { return part.starts_with(w) || w.starts_with(part); });
  };
  Bench bench(*dtype, threads);
  const auto none = Epilogue::none;
  if (asked("linear/")) {
    bench.linear("linear/768x2304", 2048, 768, 2304, none, none, true, true);
    bench.linear("linear/768x768", 2048, 768, 768, none, none, true, true);
    bench.linear("linear/768x3072", 2048, 768, 3072, Epilogue::gelu_tanh, none, true, true);
    bench.linear("linear/3072x768", 2048, 3072, 768, none, Epilogue::gelu_tanh_gradient, true, true);
  }
  if (asked("head/"))
    for (const std::int64_t rows : {256, 512, 688, 1024})
      bench.linear(fmt::format("head/{}", rows), rows, 768, 50257, none, none, false, true);
  if (asked("attention/")) bench.attention(4, 512, 12, 64, true);
  if (asked("tokens/")) bench.tokens(512, 50257);
  bench.report(words, seconds, cpu_time);
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    return assay::run({argv + 1, argv + argc});
  } catch (const assay::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
