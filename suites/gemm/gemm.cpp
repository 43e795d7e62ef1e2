// The gemm family: tries every form of a product, then measures and verifies the best.
#include "suites/gemm/gemm.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/device/cpu/team.h"
#include "harness/machine/hardware.h"
#include "suites/gemm/candidates.h"
#include "suites/gemm/sampled_rows.h"
#include "suites/gemm/shape.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/random.h"
#include "workloads/ops/tolerance.h"
#include "workloads/ops/type_support.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace assay {

namespace {

using gemm::Candidate;
using gemm::Mismatch;
using gemm::Rotated;
using gemm::SampledRows;
using gemm::Shape;

constexpr double sustained_seconds = 30;
constexpr double burst_seconds = 0.9;  // on a GPU: ends before its power limit sets in
constexpr double search_seconds = 0.3;
constexpr int max_launches = 5;  // per product: transposed copies of both operands, zeros, partial sums, their sum
constexpr std::int64_t max_compared = std::int64_t{1} << 26;  // elements, over all rotated outputs

// The `peak` suite's name for the instruction set of a library's kernel.
std::string peak_isa(std::string_view isa) {
  for (const auto& [part, name] :
       {std::pair{"amx", "amx"}, std::pair{"emulated", "emulated"}, std::pair{"avx512_core_bf16", "avx512_bf16"},
        std::pair{"avx512_core_vnni", "avx512_vnni"}, std::pair{"avx512", "avx512"}, std::pair{"avx2_vnni", "avx_vnni"},
        std::pair{"avx2", "avx2"}})
    if (isa.find(part) != std::string_view::npos) return name;
  return std::string(isa);
}

class GemmCase final : public Case {
 public:
  explicit GemmCase(const Params& params) : params_(params) {}

  std::optional<std::string> prepare(Context& context) override {
    const std::string& dtype = params_.text("dtype");
    const DeviceKind kind = context.device.kind();
    if (const auto type = dtype_from(dtype))
      if (auto reason = ops::why_no_arithmetic(context.device, *type)) return reason;
    const cpu::Team team(cpu::resolve_threads("all"));
    const Shape shape = gemm::shape_of(params_, kind);
    if (shape.fast_accumulate && !dtype.starts_with("fp8")) return fmt::format("{} has no fast accumulation", dtype);
    const gemm::Offer offer = gemm::candidates_for(*ops::backend_for(context.device), shape);
    if (offer.candidates.empty()) return fmt::format("{}", fmt::join(offer.refused, "; "));
    return std::nullopt;
  }

  void setup(Context& context) override {
    shape_ = gemm::shape_of(params_, context.device.kind());
    context_ = &context;
    ranks_ = context.inputs.world.ranks;
    sustained_ = gemm::is_sustained(params_);
    team_.emplace(cpu::resolve_threads("all"));
    const auto backend = ops::backend_for(context.device);
    gemm::Offer offer = gemm::candidates_for(*backend, shape_);
    ASSAY_CHECK(!offer.candidates.empty(), "{}", fmt::join(offer.refused, "; "));

    Protocol& protocol = context.outputs.protocol;
    protocol.cache = params_.text("cache") == "hot" ? Protocol::Cache::hot : Protocol::Cache::cold;
    if (shape_.types.out == DType::i32 && protocol.data == "normal") protocol.data = "uniform";
    if (sustained_) {
      protocol.form = Protocol::Form::window;
      protocol.max_seconds = sustained_seconds;
      protocol.target_relative_ci = 0;                             // do not stop at low noise: heating takes time
      protocol.min_samples = static_cast<int>(sustained_seconds);  // pieces of the window last one second
      protocol.warmup_seconds = 1;
    } else if (context.device.kind() == DeviceKind::cuda) {
      protocol.max_seconds = std::min(protocol.max_seconds, burst_seconds);
      protocol.set_gate(max_launches);
    }
    std::uint64_t bytes =
        gemm::stride_of(shape_.a_bytes()) + gemm::stride_of(shape_.b_bytes()) + gemm::stride_of(shape_.out_bytes());
    for (const Candidate& candidate : offer.candidates) bytes += gemm::stride_of(candidate.op->packed_bytes());
    rotation_ = Sampler::rotation(context.device, protocol, bytes);
    allocate(context, offer);
    best_ = search(context, offer);
    describe(context, *backend, offer);
    poison();
  }

  void measure(Sampler& sampler) override {
    team_->use();
    ran_.assign(static_cast<std::size_t>(rotation_.slots), 0);
    if (!sustained_) {
      sampler.repeat(
          rotation_, [this](Stream& stream, int slot) { multiply(stream, best_, slot); },
          [this](int slot) { return buffers(best_, slot); });
      return;
    }
    if (device_->kind() == DeviceKind::cpu)
      sustain(sampler);
    else
      sustain_queue(sampler);
  }

  void verify(Checks& checks) override {
    const SampledRows answer(shape_, host_a_.data(), host_b_.data(), *team_);
    const auto rows = static_cast<std::int64_t>(answer.rows().size());
    const std::int64_t slots_to_compare = std::max<std::int64_t>(1, max_compared / (rows * shape_.n));
    std::vector<int> ran;
    for (int slot = 0; slot < rotation_.slots; ++slot)
      if (ran_[static_cast<std::size_t>(slot)] != 0) ran.push_back(slot);
    checks.that("ran", !ran.empty());
    if (static_cast<std::int64_t>(ran.size()) > slots_to_compare)
      ran.resize(static_cast<std::size_t>(slots_to_compare));
    if (!ran.empty() && context_->inject(Fault::bit_flip)) flip_bit(answer, ran.back());

    Mismatch mismatch;
    for (const int slot : ran) {
      const std::string where = rotation_.slots > 1 ? fmt::format(" of output {}", slot) : "";
      for (std::size_t i = 0; i < answer.rows().size(); ++i) {
        device_->copy(host_row_.data(), out_row(slot, answer.rows()[i]), host_row_.bytes(), *stream_);
        stream_->synchronize();
        answer.compare(i, host_row_.data(), where, mismatch);
      }
    }
    const ops::Tolerance limits =
        ops::matmul_tolerance(shape_.types.a, shape_.types.out, shape_.k, shape_.fast_accumulate);
    checks.at_most("relative_error", mismatch.relative_l2(), limits.relative_l2);
    checks.at_most("wrong_elements", static_cast<double>(mismatch.wrong), 0, mismatch.culprits);
  }

  std::vector<Metric> metrics(const Measurement& measurement) const override {
    const bool integer = shape_.types.out == DType::i32;  // no floating-point operations
    const char* const unit = integer ? "OP/s" : "FLOP/s";
    Metric throughput;
    if (sustained_ && measurement.window_seconds > 0) {
      // One rank's work over the wall time of the window: a median would hide stalls.
      const double item = shape_.flops() / ranks_;
      throughput =
          value_metric("throughput", measurement.items * item / measurement.window_seconds, unit, Better::higher);
      throughput.ci95 = scaled(mean_interval(measurement.pieces), item);
    } else {
      throughput = rate_metric("throughput", shape_.flops(), unit, measurement);
    }
    if (peak_ > 0 && throughput.value) throughput.of_peak = *throughput.value / peak_;
    return {throughput};
  }

 private:
  void sustain(Sampler& sampler) {
    int slot = 0;
    sampler.window([this, &sampler, slot]() mutable {
      multiply(sampler.stream(), best_, slot);
      slot = slot + 1 == rotation_.slots ? 0 : slot + 1;
      return std::int64_t{1};
    });
  }

  // Enqueues the next batch while one runs, so that the device never waits for the host. As many products are in flight
  // when the window begins as when it ends.
  void sustain_queue(Sampler& sampler) {
    constexpr double batch_seconds = 0.02;
    const auto batch = static_cast<std::int64_t>(std::clamp(batch_seconds / best_.seconds, 1.0, 1000.0));
    const std::unique_ptr<Event> ends[2] = {device_->make_event(), device_->make_event()};
    int slot = 0, turn = 0;
    sampler.window([&]() {
      for (std::int64_t i = 0; i < batch; ++i) {
        multiply(sampler.stream(), best_, slot);
        slot = slot + 1 == rotation_.slots ? 0 : slot + 1;
      }
      ends[turn % 2]->record(sampler.stream());
      if (turn > 0) ends[(turn + 1) % 2]->synchronize();
      ++turn;
      return batch;
    });
    sampler.stream().synchronize();
  }

  void allocate(Context& context, gemm::Offer& offer) {
    device_ = &context.device;
    stream_ = device_->make_stream();
    host_a_ = device_->allocate(shape_.a_bytes(), Memory::host);
    host_b_ = device_->allocate(shape_.b_bytes(), Memory::host);
    host_row_ = device_->allocate(static_cast<std::size_t>(shape_.n) * size_of(shape_.types.out), Memory::host);
    const bool seven_bits =
        std::ranges::any_of(offer.candidates, [](const Candidate& c) { return c.op->saturates_pairs(); });
    if (seven_bits && context.outputs.protocol.data == "uniform") {
      context.outputs.protocol.data = "uniform7";
      context.outputs.flags.push_back("int8 sums saturate on this instruction set: u8 operands kept below 128");
    }
    fill(host_a_, shape_.types.a, context, "gemm a", seven_bits);
    fill(host_b_, shape_.types.b, context, "gemm b", false);

    a_ = Rotated(*device_, shape_.a_bytes(), rotation_.slots);
    b_ = Rotated(*device_, shape_.b_bytes(), rotation_.slots);
    out_ = Rotated(*device_, shape_.out_bytes(), rotation_.slots);
    std::size_t workspace = 1;
    for (const Candidate& candidate : offer.candidates)
      workspace = std::max(workspace, candidate.op->workspace_bytes());
    workspace_ = device_->allocate(workspace);
    for (const Buffer* buffer : {&a_.buffer, &b_.buffer, &out_.buffer, &workspace_}) touch(*buffer);
    for (int slot = 0; slot < rotation_.slots; ++slot) {
      device_->copy(a_.at(slot), host_a_.data(), shape_.a_bytes(), *stream_);
      device_->copy(b_.at(slot), host_b_.data(), shape_.b_bytes(), *stream_);
    }
    stream_->synchronize();
  }

  void fill(const Buffer& buffer, DType dtype, const Context& context, const char* purpose, bool seven_bits) const {
    const std::string& data = context.outputs.protocol.data;
    const auto elements = static_cast<std::int64_t>(buffer.bytes() / size_of(dtype));
    if (data == "zeros") {
      touch(buffer);
      return;
    }
    const bool floats = dtype != DType::u8 && dtype != DType::s8;
    if (data != (floats ? "normal" : seven_bits_name(data)))
      throw UsageError(fmt::format("protocol data \"{}\": gemm in {} needs {} or zeros", data, params_.text("dtype"),
                                   floats ? "normal" : "uniform"));
    const Rng rng(context.inputs.seed, purpose);
    team_->run([&](int thread) {
      const std::int64_t begin = elements * thread / team_->size();
      ops::fill_random(buffer.data(), dtype, begin, elements * (thread + 1) / team_->size(), rng, seven_bits);
    });
  }

  static const char* seven_bits_name(const std::string& data) { return data == "uniform7" ? "uniform7" : "uniform"; }

  // Zeroes a CPU buffer in parts, one per thread, so that pages are near the threads that use them.
  void touch(const Buffer& buffer) const {
    if (device_->kind() != DeviceKind::cpu) return;
    const auto threads = static_cast<std::size_t>(team_->size());
    team_->run([&](int thread) {
      const std::size_t begin = buffer.bytes() * static_cast<std::size_t>(thread) / threads;
      const std::size_t end = buffer.bytes() * static_cast<std::size_t>(thread + 1) / threads;
      if (end > begin) std::memset(buffer.as<char>() + begin, 0, end - begin);
    });
  }

  void pack(Candidate& candidate) {
    if (!candidate.packs() || candidate.weights.buffer.data()) return;
    candidate.weights = Rotated(*device_, candidate.op->packed_bytes(), rotation_.slots);
    touch(candidate.weights.buffer);
    constexpr double long_enough = 0.02;
    // The first call also compiles the reordering, which a long one does not show.
    for (int turn = 0; turn < 2 && candidate.pack_seconds < long_enough; ++turn) {
      const Clock::time_point start = Clock::now();
      candidate.op->pack(*stream_, b_.at(0), candidate.weights.at(0));
      stream_->synchronize();
      candidate.pack_seconds = seconds_since(start);
    }
    for (int slot = 1; slot < rotation_.slots; ++slot)
      device_->copy(candidate.weights.at(slot), candidate.weights.at(0), candidate.weights.bytes, *stream_);
    stream_->synchronize();
  }

  void multiply(Stream& stream, const Candidate& candidate, int slot) {
    candidate.op->run(
        stream,
        {.a = a_.at(slot), .b = weights(candidate).at(slot), .out = out_.at(slot), .workspace = workspace_.data()});
    ran_[static_cast<std::size_t>(slot)] = 1;
  }

  const Rotated& weights(const Candidate& candidate) const { return candidate.packs() ? candidate.weights : b_; }
  std::vector<MemoryRange> buffers(const Candidate& candidate, int slot) const {
    return {a_.range(slot), weights(candidate).range(slot), out_.range(slot)};
  }

  Candidate search(Context& context, gemm::Offer& offer) {
    ran_.assign(static_cast<std::size_t>(rotation_.slots), 0);
    const bool evicts = context.outputs.protocol.cache == Protocol::Cache::cold && !rotation_.exceeds_cache;
    gemm::Trial trial;
    trial.prepare = [this](Candidate& candidate) { pack(candidate); };
    trial.run = [this](const Candidate& candidate, int repetition) {
      multiply(*stream_, candidate, repetition % rotation_.slots);
    };
    if (evicts) {
      trial.max_repetitions = rotation_.slots;
      trial.evict = [this](const Candidate& candidate, int repetitions) {
        std::vector<MemoryRange> used;
        for (int slot = 0; slot < repetitions; ++slot)
          std::ranges::copy(buffers(candidate, slot), std::back_inserter(used));
        device_->evict(*stream_, used);
      };
    }
    gemm::time_candidates(offer.candidates, *device_, *stream_, trial, search_seconds);
    // All ranks use the fastest of rank 0.
    const auto best =
        static_cast<std::size_t>(context.comm.broadcast_value(static_cast<double>(gemm::choose(offer.candidates))));
    ASSAY_CHECK(best < offer.candidates.size(), "ranks support different forms of this product");
    pack(offer.candidates[best]);  // if this rank had no time to try it
    for (const Candidate& candidate : offer.candidates) {
      if (candidate.seconds == 0) {
        found_.push_back(fmt::format("{} not tried: no time was left", ops::name_of(candidate.form)));
        continue;
      }
      const std::string choice = candidate.op->choice();
      found_.push_back(fmt::format("{} {} {:.4g} GFLOP/s", ops::name_of(candidate.form),
                                   choice.empty() ? candidate.op->implementation() : choice,
                                   shape_.flops() / candidate.seconds / 1e9));
      context.outputs.labels[fmt::format("tried_{}", ops::name_of(candidate.form))] =
          fmt::format("{:.0f}", shape_.flops() / candidate.seconds);
    }
    return std::move(offer.candidates[best]);
  }

  void describe(Context& context, const ops::Backend& backend, const gemm::Offer& offer) {
    Attributes& conditions = context.outputs.conditions;
    Attributes& choices = context.outputs.choices;
    Attributes& labels = context.outputs.labels;
    conditions["accumulation"] = accumulation();
    conditions["types"] =
        fmt::format("{} x {} -> {}", name_of(shape_.types.a), name_of(shape_.types.b), name_of(shape_.types.out));
    choices["implementation"] = best_.op->implementation();
    choices["isa"] = best_.op->isa();
    if (device_->kind() == DeviceKind::cpu) choices["threads"] = std::to_string(team_->size());
    if (const std::string choice = best_.op->choice(); !choice.empty()) labels["choice"] = choice;
    labels["form"] = std::string(ops::name_of(best_.form));
    labels["libraries"] = backend.libraries();
    labels["candidates"] = fmt::format("{}", fmt::join(found_, "; "));
    if (!offer.refused.empty()) labels["not_offered"] = fmt::format("{}", fmt::join(offer.refused, "; "));
    if (context.outputs.protocol.cache == Protocol::Cache::cold) labels["cold_by"] = cold_by();
    if (best_.packs()) labels["weights"] = fmt::format("packed before timing in {:.3g} s", best_.pack_seconds);
    // Other instruction sets compute other products (emulated bf16, AMX). The form and the library's own choice are
    // labels: if they were choices, a close race in the search would make two runs of one machine incomparable.
    context.outputs.protocol.details["isa"] = best_.op->isa();

    if (device_->kind() == DeviceKind::cuda) return use_sheet_peak(context);
    const MeasuredPeak* peak = find_peak(context.inputs.peaks, params_.text("dtype"), peak_isa(best_.op->isa()),
                                         context.inputs.world.ranks, team_->size());
    if (!peak) return;
    peak_ = peak->rate;
    labels["peak"] = fmt::format("{} ({}), measured in this run", peak->key, peak->isa);
  }

  std::string cold_by() const {
    const std::string sets = fmt::format("{} set{} of buffers", rotation_.slots, rotation_.slots == 1 ? "" : "s");
    if (rotation_.exceeds_cache) return "rotation of " + sets;
    return sustained_ ? "rotation of " + sets + ", which may stay in the cache"
                      : "eviction of " + sets + " before each sample; what a sample writes may stay in the cache";
  }

  std::string accumulation() const {
    if (shape_.types.out == DType::i32) return "s32";
    if (shape_.types.a == DType::f64) return "f64";
    return shape_.fast_accumulate ? "fast: the tensor core's own sums, of fewer bits than f32" : "f32";
  }

  // The vendor's figure for this GPU and dense operands; tensor cores support f64 too.
  void use_sheet_peak(Context& context) {
    const HardwareSheet* sheet = find_hardware(shipped_hardware(), context.device.info().name);
    if (!sheet) return;
    const std::string& dtype = params_.text("dtype");
    auto peak = sheet->peak.find(dtype + "_tensor");
    if (peak == sheet->peak.end()) peak = sheet->peak.find(dtype);
    if (peak == sheet->peak.end()) return;
    peak_ = peak->second;
    context.outputs.labels["peak"] = fmt::format("{:.4g} FLOP/s, {} dense, {}: {}", peak_, peak->first, sheet->name,
                                                 sheet->sources.contains("peak") ? sheet->sources.at("peak") : "");
  }

  // Overwrites every output, so that only what the timed runs write can pass.
  void poison() {
    const int byte = shape_.types.out == DType::i32 ? 0x7f : 0xff;  // NaN in every float type
    Buffer host = device_->allocate(shape_.out_bytes(), Memory::host);
    std::memset(host.data(), byte, host.bytes());
    for (int slot = 0; slot < rotation_.slots; ++slot)
      device_->copy(out_.at(slot), host.data(), host.bytes(), *stream_);
    stream_->synchronize();
  }

  char* out_row(int slot, std::int64_t row) const {
    return static_cast<char*>(out_.at(slot)) + static_cast<std::size_t>(row) * host_row_.bytes();
  }

  // The fault bit-flip: the upper exponent bit (or a high bit of an integer) of one sampled element.
  void flip_bit(const SampledRows& answer, int slot) {
    const std::size_t index = answer.rows().size() / 2;
    char* row = out_row(slot, answer.rows()[index]);
    const std::size_t bytes = size_of(shape_.types.out);
    char* last = row + static_cast<std::size_t>(answer.largest_column(index) + 1) * bytes - 1;
    char byte = 0;
    device_->copy(&byte, last, 1, *stream_);
    stream_->synchronize();
    byte = static_cast<char>(byte ^ 0x40);
    device_->copy(last, &byte, 1, *stream_);
    stream_->synchronize();
  }

  Params params_;
  Shape shape_;
  bool sustained_ = false;
  int ranks_ = 1;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  Device* device_ = nullptr;
  std::unique_ptr<Stream> stream_;
  Rotation rotation_;
  Buffer host_a_, host_b_, host_row_, workspace_;
  Rotated a_, b_, out_;
  Candidate best_;
  std::vector<std::string> found_;
  std::vector<char> ran_;  // for each slot whether a timed run has written it
  double peak_ = 0;        // FLOP/s of one rank; 0: unknown
};

double aligned(double bytes) { return static_cast<double>(gemm::stride_of(static_cast<std::size_t>(bytes))); }

// The most that b takes in a layout of a library: padded to blocks of 64 x 64, with a 32-bit sum per column.
double packed_bytes(const Shape& shape) {
  const auto blocks = [](std::int64_t size) { return static_cast<double>((size + 63) / 64 * 64); };
  return aligned(blocks(shape.k) * blocks(shape.n) * static_cast<double>(size_of(shape.types.b)) + 4 * blocks(shape.n));
}

Estimate estimate(const Params& params, const World& world) {
  Estimate e;
  // Sizes do not depend on the device, and GPUs support more types than CPUs.
  if (!gemm::types_of(params.text("dtype"), DeviceKind::cuda)) return e;
  const Shape shape = gemm::shape_of(params, DeviceKind::cuda);
  const double a = static_cast<double>(shape.a_bytes());
  const double b = static_cast<double>(shape.b_bytes());
  const double out = static_cast<double>(shape.out_bytes());
  e.bytes = a + b + out;
  e.flops = shape.flops();
  if (gemm::is_sustained(params)) e.seconds = sustained_seconds;
  // The sets that rotate, the host's operands, and its copy of the output that is compared or poisoned.
  const double set = aligned(a) + aligned(b) + aligned(out) + 2 * packed_bytes(shape);
  e.memory_bytes = a + b + out + (params.text("cache") == "hot" ? set : Sampler::max_rotation_bytes(world.device, set));
  return e;
}

}  // namespace

namespace {

ParamSpec size(const char* name, const char* help) {
  constexpr double max_size = 1 << 30;  // bytes of an operand still fit in 64 bits; memory runs out far earlier
  return axis::integer(name, 2048).runs_on_gpu({8192}).range(1, max_size).doc(help);
}

}  // namespace

Family gemm_family() {
  Family family{};
  family.name = "gemm";
  family.summary = "matrix product: FLOP/s by dtype, shape and transpose";
  const std::vector<std::string> dtypes{"f64", "f32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int8"};
  family.params = {
      axis::choice("dtype", dtypes)
          .runs({"f32", "bf16", "int8", "f64"})
          .runs_on_gpu(dtypes)
          .doc("element type of the operands; int8 is u8 x s8 (s8 x s8 on a GPU) with s32 sums, fp8_e5m2 is multiplied "
               "by fp8_e4m3"),
      size("m", "rows of the first operand and the output"),
      size("n", "columns of the second operand and the output"),
      size("k", "terms of each sum"),
      axis::choice("transpose", {"nn", "nt", "tn", "tt"}).runs({"nn"}).doc("per operand: t if it is stored transposed"),
      axis::choice("cache", {"cold", "hot"})
          .runs({"cold"})
          .doc("cold: operands are in no cache when a product begins; hot: they stay"),
      axis::choice<gemm::Duration>("duration").runs({"burst"}).doc("sustained: a window of 30 s, for clocks and heat"),
      axis::choice<gemm::Accumulation>("accumulation")
          .runs({"full"})
          .only(DeviceKind::cuda)
          .doc("fast: fp8 sums stay in the tensor core's own format of fewer bits"),
      axis::gpus(),
  };
  family.estimate = estimate;
  family.make = make_case_of<GemmCase>;
  family.faults = {Fault::bit_flip};
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  return family;
}

}  // namespace assay
