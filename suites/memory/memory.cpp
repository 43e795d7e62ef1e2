// The memory family and its case.
#include "suites/memory/memory.h"

#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "harness/device/cpu/topology.h"
#include "suites/memory/arrays.h"
#include "suites/memory/chase.h"
#include "suites/memory/cuda_case.h"
#include "suites/memory/kernels.h"
#include "suites/memory/memory_params.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>

namespace assay {

namespace memory {

namespace {

enum class Store { plain, nontemporal, automatic };
constexpr auto words(Store) { return std::to_array<std::string_view>({"plain", "nontemporal", "auto"}); }

// Each thread repeats its part inside one parallel region, as in likwid-bench, so often that entering and leaving the
// region (a few microseconds) costs below 1 % even in the first-level cache.
constexpr double bytes_per_repetition = 64.0 * (1 << 20);  // per thread
constexpr std::uint64_t hops_in_cache = 1u << 20;
constexpr std::uint64_t hops_beyond = 1u << 18;
constexpr std::size_t small_chase_bytes = 1u << 20;

// State of one thread, on its own cache lines.
struct alignas(128) ThreadState {
  double sum = 0;  // the sum of read's last pass
  const Line* position = nullptr;
  std::uint64_t hops = 0;
  std::uint64_t wrong = 0;
  std::vector<std::string> detail;
};

class MemoryCase final : public Case {
 public:
  explicit MemoryCase(const Params& params)
      : info_(info_of(params)),
        elements_(elements_of(params)),
        store_(params.choice<Store>("store")),
        threads_(params.word("threads")) {}

  std::optional<std::string> prepare(Context&) override {
    int threads = 0;
    try {
      threads = cpu::resolve_threads(threads_);
    } catch (const UsageError& error) {
      return error.what();
    }
    if (elements_ < static_cast<std::size_t>(threads) * doubles_per_line * (info_.op == Op::latency ? 2 : 1))
      return fmt::format("{} bytes are less than {} for each of {} threads", elements_ * sizeof(double),
                         info_.op == Op::latency ? "two cache lines" : "a cache line", threads);
    if (store_ == Store::nontemporal) {
      if (!info_.stores) return fmt::format("{} stores nothing", info_.name);
      if (!best_kernels().nontemporal[static_cast<int>(info_.op)]) return "this processor has no non-temporal stores";
    }
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    team_.emplace(cpu::resolve_threads(threads_));
    slices_ = split(elements_, team_->size());
    states_.resize(slices_.size());
    allocate(context);
    plan_repetition();
    const std::string store = choose_store(context);
    if (info_.op != Op::latency) kernel_ = kernel_for(store);
    describe(context, store);
  }

  void measure(Sampler& sampler) override {
    const std::function<void(int)> work = [this](int thread) { run_thread(thread); };
    sampler.repeat([&](Stream&, int) { team_->run(work); });
  }

  void verify(Checks& checks) override {
    if (context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::bit_flip)) flip_a_bit();
    team_->run([this](int thread) { check_thread(thread); });
    std::uint64_t wrong = 0;
    std::vector<std::string> detail;
    for (const ThreadState& state : states_) {
      wrong += state.wrong;
      for (const std::string& line : state.detail)
        if (detail.size() < 20) detail.push_back(line);
    }
    checks.at_most("wrong_elements", static_cast<double>(wrong), 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    if (info_.op != Op::latency) return {rate_metric("bandwidth", counted_bytes(), "B/s", measured)};
    return {time_metric("latency", measured, static_cast<double>(hops_))};
  }

 private:
  double array_bytes() const { return static_cast<double>(elements_ * sizeof(double)); }
  // Per repetition, as STREAM counts.
  double counted_bytes() const { return array_bytes() * info_.arrays() * static_cast<double>(passes_); }
  Slice slice(int thread) const { return slices_[static_cast<std::size_t>(thread)]; }
  ThreadState& state(int thread) { return states_[static_cast<std::size_t>(thread)]; }

  void allocate(Context& context) {
    const auto make = [&](Buffer& buffer) { buffer = context.device.allocate(elements_ * sizeof(double)); };
    if (info_.op == Op::latency) {
      make(inputs_[0]);
      team_->run([&](int thread) {
        Line* lines = lines_of(thread);
        link_cycle(lines, slice(thread).count / doubles_per_line,
                   Rng(context.inputs.seed + static_cast<std::uint64_t>(thread), "chase"));
        state(thread).position = lines;
      });
      return;
    }
    for (int i = 0; i < info_.inputs; ++i) {
      make(inputs_[i]);
      fill_input(inputs_[i].as<double>(), i, *team_, slices_);
    }
    if (info_.stores) {
      make(output_);
      fill_output(output_.as<double>(), *team_, slices_);
    }
  }

  Line* lines_of(int thread) { return reinterpret_cast<Line*>(inputs_[0].as<double>() + slice(thread).first); }

  void plan_repetition() {
    const double share = array_bytes() / team_->size();
    passes_ = static_cast<std::uint64_t>(std::max(1.0, std::ceil(bytes_per_repetition / (share * info_.arrays()))));
    hops_ = share <= static_cast<double>(small_chase_bytes) ? hops_in_cache : hops_beyond;
  }

  Kernel kernel_for(const std::string& store) const {
    const KernelSet& set = best_kernels();
    return (store == "nontemporal" ? set.nontemporal : set.plain)[static_cast<int>(info_.op)];
  }

  void run_thread(int thread) {
    ThreadState& own = state(thread);
    if (info_.op == Op::latency) {
      own.position = chase(own.position, hops_);
      own.hops += hops_;
      return;
    }
    const Slice part = slice(thread);
    double* out = info_.stores ? output_.as<double>() + part.first : nullptr;
    const double* x = info_.inputs > 0 ? inputs_[0].as<double>() + part.first : nullptr;
    const double* y = info_.inputs > 1 ? inputs_[1].as<double>() + part.first : nullptr;
    for (std::uint64_t pass = 0; pass < passes_; ++pass) own.sum = kernel_(out, x, y, part.count);
  }

  // Seconds of one repetition with the current kernel, on the slowest rank.
  double trial(Context& context) {
    context.comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    team_->run([this](int thread) { run_thread(thread); });
    return context.comm.max_of(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  // Chooses by samples of its own, which are not in the record.
  std::string choose_store(Context& context) {
    if (!info_.stores) return "none";
    if (store_ != Store::automatic) return word_of(store_);
    if (!kernel_for("nontemporal")) return "plain";
    constexpr int min_trials = 3, max_trials = 7;
    constexpr double long_enough = 0.1;  // seconds of trials, of which min_trials are enough then
    std::vector<double> plain, nontemporal;
    double all = 0;
    for (int i = -1; i < (all < long_enough ? max_trials : min_trials); ++i)  // the first of each is warm-up
      for (const bool streaming : {false, true}) {
        kernel_ = kernel_for(streaming ? "nontemporal" : "plain");
        const double seconds = trial(context);
        all += seconds;
        if (i >= 0) (streaming ? nontemporal : plain).push_back(seconds);
      }
    context.outputs.labels["store_search"] =
        fmt::format("plain {:.1f} GB/s, nontemporal {:.1f} GB/s", counted_bytes() / median(plain) * 1e-9,
                    counted_bytes() / median(nontemporal) * 1e-9);
    return median(nontemporal) < median(plain) ? "nontemporal" : "plain";
  }

  void describe(Context& context, const std::string& store) {
    const double cache = static_cast<double>(context.device.info().last_level_cache_bytes);
    const double footprint = array_bytes() * info_.arrays();
    // Arrays that fit in the cache stay hot; larger ones evict themselves. As in STREAM, nothing is rotated or flushed.
    context.outputs.protocol.cache = footprint <= cache ? Protocol::Cache::hot : Protocol::Cache::none;
    context.outputs.protocol.data = "integers";
    const std::string page_size = page_size_of(used_buffers());
    context.outputs.protocol.details["page_size"] = page_size;
    context.outputs.protocol.details["numa"] = numa_policy();
    context.outputs.conditions["array_bytes"] = std::to_string(elements_ * sizeof(double));
    context.outputs.choices["page_size"] = page_size;
    context.outputs.choices["threads"] = std::to_string(team_->size());
    // Labels, since the faster store and the cache level follow from the sizes of a machine's caches, and machines must
    // remain comparable.
    Attributes& labels = context.outputs.labels;
    if (info_.op == Op::latency) {
      labels["hops"] = std::to_string(hops_);
    } else {
      context.outputs.choices["isa"] = best_kernels().isa;
      labels["store"] = store;
      labels["passes"] = std::to_string(passes_);
    }
    labels["level"] = level(footprint, cache);
  }

  std::vector<const Buffer*> used_buffers() const {
    std::vector<const Buffer*> used;
    for (const Buffer* buffer : {&inputs_[0], &inputs_[1], &output_})
      if (buffer->data()) used.push_back(buffer);
    return used;
  }

  // The level that contains the working set: private caches hold one thread's part, the last one everything.
  std::string level(double footprint, double last_level) const {
    const int cpu = cpu::rank_cpus().front();
    for (const int number : {1, 2}) {
      const auto bytes = static_cast<double>(cpu::topology().cache_bytes(number, cpu));
      if (footprint / team_->size() <= bytes) return fmt::format("L{}", number);
    }
    if (footprint <= last_level) return "last-level cache";
    return array_bytes() >= 4 * last_level ? "memory" : "memory, in part cached";
  }

  void flip_a_bit() {
    Buffer& target = info_.stores ? output_ : inputs_[0];
    std::uint64_t* words = target.as<std::uint64_t>();
    // A line's place in a chase is its second word.
    words[elements_ / 2 / doubles_per_line * doubles_per_line + 1] ^= std::uint64_t{1} << 50;
  }

  void check_thread(int thread) {
    ThreadState& own = state(thread);
    const Slice part = slice(thread);
    const auto found = [&](std::string what) {
      if (own.wrong++ < 5) own.detail.push_back(std::move(what));
    };
    if (info_.op == Op::latency) {
      const std::size_t lines = part.count / doubles_per_line;
      own.wrong = wrong_lines(lines_of(thread), lines);
      if (own.wrong)
        own.detail.push_back(fmt::format("thread {}: {} lines out of order in the cycle", thread, own.wrong));
      if (own.position->place != own.hops % lines)
        found(fmt::format("thread {}: {} hops ended at place {}, not {}", thread, own.hops, own.position->place,
                          own.hops % lines));
      return;
    }
    const bool reading = info_.op == Op::read;
    const double* data = reading ? inputs_[0].as<double>() : output_.as<double>();
    double sum = 0;
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      const double right = reading ? input(0, i) : expected(info_.op, i);
      sum += right;
      if (!(data[i] == right)) found(fmt::format("element {} is {}, not {}", i, data[i], right));
    }
    if (reading && own.sum != sum)
      found(fmt::format("thread {} read a sum of {}, not {}, over elements {} to {}", thread, own.sum, sum, part.first,
                        part.first + part.count - 1));
  }

  OpInfo info_;
  std::size_t elements_;
  Store store_;
  std::string threads_;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  std::vector<Slice> slices_;
  std::vector<ThreadState> states_;
  std::array<Buffer, 2> inputs_;
  Buffer output_;
  Kernel kernel_ = nullptr;
  std::uint64_t passes_ = 1;  // over each thread's part per repetition
  std::uint64_t hops_ = 0;    // per thread and repetition
};

Estimate estimate(const Params& params, const World&) {
  const OpInfo& info = info_of(params);
  const double bytes = static_cast<double>(elements_of(params) * sizeof(double)) * info.arrays();
  Estimate result;
  result.memory_bytes =
      info.op == Op::latency ? bytes * (1 + sizeof(std::size_t) / static_cast<double>(line_bytes)) : bytes;
  result.bytes =
      info.op == Op::latency ? static_cast<double>(hops_beyond * line_bytes) : std::max(bytes, bytes_per_repetition);
  return result;
}

// Bytes of each array if the case names none: 4 x the last-level cache, as STREAM asks, so that the arrays go to memory
// even if the cache's replacement policy is not LRU. A large cache in front of few cores would make filling them take
// longer than measuring: there all arrays together have 512 MiB per core, but more than twice the cache.
std::int64_t default_bytes(const OpInfo& info, double cache, int cores) {
  constexpr double mebibyte = 1 << 20;
  const double all = std::max(512 * mebibyte * cores, 2.125 * cache) / info.arrays();
  return static_cast<std::int64_t>(std::min(4 * cache, std::floor(all / mebibyte) * mebibyte));
}

void complete(Params& params) {
  if (params.integer("bytes") > 0) return;
  const std::uint64_t cache = cpu::topology().last_level_cache_bytes(cpu::rank_cpus());
  params.set("bytes", default_bytes(info_of(params), static_cast<double>(cache), cpu::rank_cores()));
}

}  // namespace
}  // namespace memory

Family memory_family() {
  Family family;
  family.name = "memory";
  family.summary = "memory bandwidth as STREAM counts it, and latency of dependent loads, of a rank's cores or GPU";
  std::vector<std::string> names;
  for (const auto& info : memory::ops) names.emplace_back(info.name);

  family.params = {
      axis::choice("op", names).only(DeviceKind::cuda, {"dot"}).doc("the loop; latency is a pointer chase"),
      axis::bytes("bytes", {0})
          .runs_on_gpu({1 << 30})
          .at_least(64)
          .doc("bytes of one array; by default (0) 4 x the last-level cache, or what 512 MiB per core allow; on a GPU "
               "1 GiB"),
      axis::choice<memory::Store>("store")
          .runs({"auto"})
          .only(DeviceKind::cpu)
          .doc("kind of store; auto: the faster one in a trial before the measurement"),
      axis::count("threads", {"core", "node", "all"})
          .runs({"all"})
          .at_least(1)
          .only(DeviceKind::cpu)
          .doc("threads: of one core, of one NUMA node, of all cores"),
      axis::gpus(),
  };
  family.complete = memory::complete;
  family.estimate = memory::estimate;
  family.make = make_case_of<memory::MemoryCase>;
  family.make_cuda = memory::make_cuda_case;
  family.faults = {Fault::bit_flip};
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  return family;
}

}  // namespace assay
