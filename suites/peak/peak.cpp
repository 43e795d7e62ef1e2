// The peak family: register-only loops on a core or all of them, each pass checked against its closed form.
#include "suites/peak/peak.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "harness/sensors/telemetry.h"
#include "suites/peak/kernels.h"
#include "suites/peak/operands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace assay {

namespace {

using peak::Kernel;

// Passes that a thread runs between two barriers of the team, just under a millisecond: long enough for a barrier to
// cost under 0.5 %, short enough for most repetitions to fit between the interruptions of a busy machine.
constexpr int passes = 4;
constexpr int scaling_rounds = 5;
constexpr int search_rounds = 5;
// A wider instruction set is preferred unless a narrower one is this much faster, so that noise does not decide.
constexpr double clearly_faster = 1.05;

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return seconds_since(start);
}

// State of one thread, on its own cache lines.
struct alignas(64) Worker {
  std::vector<std::byte> sums;
  std::int64_t wrong = 0;  // sums of all passes
  double clock_hz = 0;
};

class PeakCase final : public Case {
 public:
  explicit PeakCase(const Params& params)
      : dtype_(params.text("dtype")), isa_(params.text("isa")), threads_(params.word("threads")) {}

  std::optional<std::string> prepare(Context&) override {
    if (peak::kernels().empty()) return "this build has no loops for the processor's instruction sets";
    if (isa_ == "auto") {
      if (peak::supported_kernels(dtype_).empty()) return fmt::format("this CPU has no {} multiply-add", dtype_);
      return std::nullopt;
    }
    const Kernel* kernel = peak::find_kernel(dtype_, isa_);
    if (!kernel) return fmt::format("{} has no {} multiply-add", isa_, dtype_);
    if (!kernel->supported(cpu::instruction_sets())) return fmt::format("this CPU has no {}", isa_);
    return std::nullopt;
  }

  void setup(Context& context) override {
    team_.emplace(cpu::resolve_threads(threads_));
    context_ = &context;
    workers_ = std::vector<Worker>(static_cast<std::size_t>(team_->size()));
    std::vector<std::string> found;
    use(isa_ == "auto" ? fastest(context.inputs.seed, found) : peak::find_kernel(dtype_, isa_), context.inputs.seed);
    if (team_->size() > 1) measure_scaling();

    context.outputs.protocol.data = "dyadic";
    context.outputs.protocol.cache = Protocol::Cache::none;
    Attributes& choices = context.outputs.choices;
    choices["isa"] = std::string(chosen_->isa);
    choices["implementation"] = fmt::format("{} independent sums of {}", chosen_->accumulators, chosen_->lanes);
    choices["threads"] = fmt::format("{}", team_->size());
    if (!found.empty()) context.outputs.labels["candidates"] = fmt::format("{}", fmt::join(found, "; "));
    if (real_cores_)
      context.outputs.labels["scaling"] =
          fmt::format("{} threads do the work of {:.2f} cores: {}", team_->size(), *real_cores_, kind_of_threads());
    context.outputs.protocol.details["isa"] = choices["isa"];
    context.outputs.protocol.details["threads"] = choices["threads"];
  }

  void measure(Sampler& sampler) override {
    for (Worker& worker : workers_) worker.wrong = 0;
    sampler.repeat([this](Stream&, int) { team_->run([this](int thread) { work(thread, passes); }); });
    read_clocks();
  }

  void verify(Checks& checks) override {
    if (context_->inject(Fault::bit_flip)) workers_.front().sums.front() ^= std::byte{1};
    std::int64_t wrong = 0;
    std::vector<std::string> culprits;
    for (std::size_t t = 0; t < workers_.size(); ++t) {
      const Worker& worker = workers_[t];
      wrong += worker.wrong;
      const std::size_t lanes = static_cast<std::size_t>(chosen_->lanes);
      for (std::size_t i = 0; i < static_cast<std::size_t>(chosen_->accumulators) * lanes; ++i) {
        const double got = peak::sum_at(*chosen_, worker.sums.data(), i);
        const double want = peak::sum_at(*chosen_, expected_.data(), i);
        if (got == want) continue;
        // Sums of the last pass are already counted in `wrong`, unless they changed since.
        if (worker.wrong == 0) ++wrong;
        culprits.push_back(
            fmt::format("thread {}, sum {}, lane {}: {:.9g}, not {:.9g}", t, i / lanes, i % lanes, got, want));
      }
    }
    checks.at_most("wrong_elements", static_cast<double>(wrong), 0, std::move(culprits));
  }

  std::vector<Metric> metrics(const Measurement& measurement) const override {
    const bool integer = chosen_->element == peak::Element::int8;  // no floating-point operations
    std::vector<Metric> all{rate_metric("throughput", flops() * passes, integer ? "OP/s" : "FLOP/s", measurement)};
    double clocks = 0;
    for (const Worker& worker : workers_) clocks += worker.clock_hz;
    if (clocks > 0 && all.front().value) {
      Metric per_cycle;
      per_cycle.name = "flop_per_cycle";
      per_cycle.unit = integer ? "OP" : "FLOP";
      per_cycle.value = *all.front().value / clocks;
      all.push_back(per_cycle);
    }
    if (real_cores_) {
      Metric cores;
      cores.name = "real_cores";
      cores.unit = "1";
      cores.value = real_cores_;
      all.push_back(cores);
    }
    return all;
  }

 private:
  // Per pass, on all threads.
  double flops() const { return chosen_->flops_per_pass() * team_->size(); }

  void use(const Kernel* kernel, std::uint64_t seed) {
    chosen_ = kernel;
    operands_ = peak::make_operands(*kernel, seed);
    expected_ = peak::expected_sums(*kernel, operands_);
    for (Worker& worker : workers_) worker.sums.assign(kernel->sum_bytes(), std::byte{});
  }

  void work(int thread, int count) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    for (int pass = 0; pass < count; ++pass) {
      chosen_->run(operands_, chosen_->pairs, worker.sums.data());
      if (std::memcmp(worker.sums.data(), expected_.data(), expected_.size()) != 0) worker.wrong += wrong_sums(worker);
    }
  }

  std::int64_t wrong_sums(const Worker& worker) const {
    std::int64_t wrong = 0;
    const auto count = static_cast<std::size_t>(chosen_->accumulators) * static_cast<std::size_t>(chosen_->lanes);
    for (std::size_t i = 0; i < count; ++i)
      if (peak::sum_at(*chosen_, worker.sums.data(), i) != peak::sum_at(*chosen_, expected_.data(), i)) ++wrong;
    return wrong;
  }

  // The loop with the fastest of a few short, interleaved runs. Adds each loop's rate to `found`.
  const Kernel* fastest(std::uint64_t seed, std::vector<std::string>& found) {
    const std::vector<const Kernel*> supported = peak::supported_kernels(dtype_);
    ASSAY_CHECK(!supported.empty(), "no loop for {}", dtype_);
    std::vector<double> rates(supported.size());
    for (int round = 0; round < search_rounds; ++round)
      for (std::size_t i = 0; i < supported.size(); ++i) {
        use(supported[i], seed);
        const double seconds = seconds_of([this] { team_->run([this](int thread) { work(thread, passes); }); });
        rates[i] = std::max(rates[i], flops() * passes / seconds);
      }
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < supported.size(); ++i) {  // from narrow to wide
      found.push_back(fmt::format("{} {:.4g} GFLOP/s", supported[i]->isa, rates[i] / 1e9));
      if (rates[i] * clearly_faster > rates[chosen]) chosen = i;
    }
    return supported[chosen];
  }

  void read_clocks() {
    team_->run([this](int thread) {
      work(thread, 1);
      workers_[static_cast<std::size_t>(thread)].clock_hz = clock_by_dependent_adds();
    });
  }

  // Work per cycle of all threads together over that of one thread. Unlike shared cores, clocks that fall as more cores
  // work do not lower it.
  void measure_scaling() {
    std::vector<double> ratios;
    for (int round = 0; round < scaling_rounds; ++round) {
      const double together = seconds_of([this] { team_->run([this](int thread) { work(thread, passes); }); });
      read_clocks();
      double clocks = 0;
      for (const Worker& worker : workers_) clocks += worker.clock_hz;
      // Idle OpenMP threads spin for a while, which would slow down an SMT sibling.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const double alone = seconds_of([this] { work(0, passes); });
      const double clock = clock_by_dependent_adds();
      if (clocks <= 0 || clock <= 0) return;
      const double cycles_together = together * clocks / team_->size();
      ratios.push_back(team_->size() * alone * clock / cycles_together);
    }
    real_cores_ = median(ratios);
  }

  std::string kind_of_threads() const {
    const double fraction = *real_cores_ / team_->size();
    if (fraction > 0.85) return "cores of their own";
    return fraction < 0.65 ? "siblings that share cores" : "cores that are shared or disturbed";
  }

  std::string dtype_;
  std::string isa_;
  std::string threads_;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  const Kernel* chosen_ = nullptr;
  peak::Operands operands_;
  std::vector<std::byte> expected_;
  std::vector<Worker> workers_;
  std::optional<double> real_cores_;
};

Estimate estimate(const Params& params, const World& world) {
  Estimate e;
  const std::string threads = params.word("threads");
  const int count =
      threads == "core" ? 1 : std::max(1, world.cpus / std::max(1, world.ranks / std::max(1, world.nodes)));
  const std::string& isa = params.text("isa");
  for (const Kernel* kernel : peak::supported_kernels(params.text("dtype")))  // auto: the widest
    if (isa == "auto" || isa == kernel->isa) e.flops = kernel->flops_per_pass() * passes * count;
  e.memory_bytes = 1 << 20;
  return e;
}

std::optional<std::string> conflict(const Params& params, const World& world) {
  const std::string threads = params.word("threads");
  if (threads.empty() || threads.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  if (world.cpus > 0 && std::stod(threads) > world.cpus)
    return fmt::format("threads={}: this machine has {} CPUs", threads, world.cpus);
  return std::nullopt;
}

}  // namespace

Family peak_family() {
  Family family{};
  family.name = "peak";
  family.summary = "rate of multiply-adds that the instruction set allows, in register-only loops";
  family.params = {
      axis::choice("dtype", {"f64", "f32", "bf16", "int8"})
          .doc("element type; bf16 sums in f32, int8 is u8 x s8 with s32 sums"),
      axis::choice("isa", {"auto", "sse", "avx2", "avx512", "avx512_bf16", "avx_vnni", "avx512_vnni", "amx"})
          .runs({"auto"})
          .doc("instruction set; auto: the fastest that the CPU has for the dtype"),
      axis::count("threads", {"core", "node", "all", "cpus"})
          .runs({"core", "all"})
          .doc("one core, a NUMA node's cores, all cores, all CPUs (SMT siblings too), or a number"),
  };
  family.estimate = estimate;
  family.make = make_case_of<PeakCase>;
  family.faults = {Fault::bit_flip};
  family.devices = std::vector{DeviceKind::cpu};  // g++ 14 warns about a plain list under sanitizers
  family.conflict = conflict;
  return family;
}

}  // namespace assay
