#include "suites/memory/cuda_case.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "suites/memory/chase.h"
#include "suites/memory/device_kernels.h"
#include "suites/memory/memory_params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace assay::memory {

std::unique_ptr<DeviceKernels> load_device_kernels() {
  using Make = DeviceKernels* (*)();
  return std::unique_ptr<DeviceKernels>(Module::load("cuda").function<Make>("assay_cuda_memory_kernels")());
}

namespace {

// One kernel makes several passes over arrays that fit in the cache, so that its launch and ramps, about 3 us, are
// negligible: at 40 GB/s per SM it takes 200 us (computed).
constexpr double bytes_per_unit = 8.0 * (1 << 20);  // per SM and repetition
constexpr double max_passes = 1 << 16;
constexpr int output_array = 2;  // among the arrays, after the inputs
constexpr std::uint64_t hops_per_repetition = 4096;
constexpr int rounds = 5;               // rounds of the search over all variants
constexpr double search_seconds = 2.0;  // after that, no new round begins

class CudaMemoryCase final : public Case {
 public:
  explicit CudaMemoryCase(const Params& params) : info_(info_of(params)), elements_(elements_of(params)) {}

  std::optional<std::string> prepare(Context&) override {
    const std::size_t min_elements = (info_.op == Op::latency ? 2 : 1) * doubles_per_line;
    if (elements_ >= min_elements) return std::nullopt;
    return fmt::format("{} bytes are less than {} bytes", elements_ * sizeof(double), min_elements * sizeof(double));
  }

  void setup(Context& context) override {
    context_ = &context;
    kernels_ = load_device_kernels();
    stream_ = context.device.make_stream();
    level_ = l2_level(context.device.info(), footprint());
    if (info_.op == Op::latency)
      link();
    else
      allocate();
    describe(context);
    context.outputs.protocol.set_gate(1);
  }

  void measure(Sampler& sampler) override {
    sampler.repeat([this](Stream& stream, int) { enqueue(stream); });
  }

  void verify(Checks& checks) override {
    if (context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::bit_flip)) flip_a_bit();
    std::vector<std::string> detail;
    const double wrong = info_.op == Op::latency ? check_cycle(detail) : check_arrays(detail);
    checks.at_most("wrong_elements", wrong, 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    if (info_.op != Op::latency) return {rate_metric("bandwidth", counted_bytes(), "B/s", measured)};
    return {time_metric("latency", measured, static_cast<double>(hops_per_repetition))};
  }

 private:
  std::size_t array_bytes() const { return elements_ * sizeof(double); }
  double footprint() const { return static_cast<double>(array_bytes()) * info_.arrays(); }
  // Per repetition, as STREAM counts.
  double counted_bytes() const { return footprint() * static_cast<double>(passes_); }

  void enqueue(Stream& stream) {
    if (info_.op == Op::latency) {
      kernels_->chase(static_cast<const void**>(position_.data()), hops_per_repetition, stream);
      hops_ += hops_per_repetition;
    } else {
      kernels_->run(info_.op, variant_, arrays_, passes_, stream);
    }
  }

  void allocate() {
    Device& device = context_->device;
    const double wanted = bytes_per_unit * device.info().compute_units;
    if (in_cache()) passes_ = static_cast<std::uint64_t>(std::clamp(std::ceil(wanted / footprint()), 1.0, max_passes));
    for (int i = 0; i < info_.inputs; ++i) {
      Buffer& buffer = inputs_[static_cast<std::size_t>(i)];
      buffer = device.allocate(array_bytes());
      kernels_->fill(buffer.as<double>(), i, elements_, *stream_);
    }
    if (info_.stores) {
      output_ = device.allocate(array_bytes());
      kernels_->fill(output_.as<double>(), output_array, elements_, *stream_);
    }
    sum_ = device.allocate(sizeof(double));
    scratch_ = device.allocate(kernels_->scratch_bytes());
    device.zero(scratch_.data(), scratch_.bytes(), *stream_);
    arrays_ = {output_.as<double>(), inputs_[0].as<double>(), inputs_[1].as<double>(), elements_,
               sum_.as<double>(),    scratch_.data()};
    choose_variant();
    if (info_.stores)
      kernels_->fill(output_.as<double>(), output_array, elements_, *stream_);  // discard the results of the search
    stream_->synchronize();
  }

  // Chooses by samples of its own, which are not in the record. The slowest rank's times count, so all ranks choose
  // alike.
  void choose_variant() {
    const std::vector<Variant> variants = kernels_->variants(info_.op, in_cache());
    std::vector<std::vector<double>> seconds(variants.size());
    const auto start = context_->device.make_event(), stop = context_->device.make_event();
    double spent = 0;
    for (int round = 0; round < rounds && spent < search_seconds; ++round)
      for (std::size_t i = 0; i < variants.size(); ++i) {
        constexpr int timed = 2;
        kernels_->run(info_.op, variants[i], arrays_, passes_, *stream_);  // gives the host time to enqueue the rest
        start->record(*stream_);
        for (int n = 0; n < timed; ++n) kernels_->run(info_.op, variants[i], arrays_, passes_, *stream_);
        stop->record(*stream_);
        stop->synchronize();
        seconds[i].push_back(context_->comm.max_of(stop->seconds_since(*start) / timed));
        spent += seconds[i].back() * (timed + 1);
      }
    std::size_t best = 0;
    for (std::size_t i = 1; i < variants.size(); ++i)
      if (median(seconds[i]) < median(seconds[best])) best = i;
    variant_ = variants[best];
    context_->outputs.labels["kernel"] = variant_.text();
    context_->outputs.labels["kernel_search"] =
        fmt::format("fastest of {}, {:.0f} GB/s where the first has {:.0f}", variants.size(),
                    counted_bytes() / median(seconds[best]) * 1e-9, counted_bytes() / median(seconds[0]) * 1e-9);
  }

  std::size_t lines() const { return elements_ / doubles_per_line; }

  // Links the cycle on the host, with device addresses.
  void link() {
    Device& device = context_->device;
    inputs_[0] = device.allocate(array_bytes());
    const Buffer host = device.allocate(array_bytes(), Memory::host);
    link_cycle(host.as<Line>(), lines(), Rng(context_->inputs.seed, "chase"));
    relocate(host.as<Line>(), host.as<Line>(), inputs_[0].as<Line>());
    device.copy(inputs_[0].data(), host.data(), array_bytes(), *stream_);
    position_ = device.allocate(sizeof(void*));
    const Buffer first = device.allocate(sizeof(void*), Memory::pinned);
    *first.as<const void*>() = inputs_[0].data();
    device.copy(position_.data(), first.data(), sizeof(void*), *stream_);
    // Warm-up is too short for a whole round through a large cache.
    for (std::uint64_t left = in_cache() ? lines() : 0; left > 0;) {
      const std::uint64_t hops = std::min<std::uint64_t>(left, hops_per_repetition);
      kernels_->chase(static_cast<const void**>(position_.data()), hops, *stream_);
      left -= hops;
    }
    hops_ = in_cache() ? lines() : 0;
    stream_->synchronize();
  }
  void relocate(Line* all, const Line* from, const Line* to) const {
    for (std::size_t i = 0; i < lines(); ++i) {
      const auto distance = reinterpret_cast<std::uintptr_t>(all[i].next) - reinterpret_cast<std::uintptr_t>(from);
      all[i].next = reinterpret_cast<const Line*>(reinterpret_cast<std::uintptr_t>(to) + distance);
    }
  }

  bool in_cache() const { return !level_.empty(); }

  void describe(Context& context) {
    const double cache = static_cast<double>(context.device.info().last_level_cache_bytes);
    // Arrays that fit in the cache stay hot; larger ones evict themselves. As in STREAM, nothing is rotated or flushed.
    context.outputs.protocol.cache = level_ == "L2" ? Protocol::Cache::hot : Protocol::Cache::none;
    context.outputs.protocol.data = "integers";
    context.outputs.conditions["array_bytes"] = std::to_string(array_bytes());
    Attributes& labels = context.outputs.labels;
    if (info_.op == Op::latency)
      labels["hops"] = std::to_string(hops_per_repetition);
    else
      labels["passes"] = std::to_string(passes_);
    labels["level"] = in_cache()                                          ? std::string(level_)
                      : static_cast<double>(array_bytes()) >= 4.0 * cache ? "memory"
                                                                          : "memory, in part cached";
  }

  void flip_a_bit() {
    const Buffer& target = info_.stores ? output_ : inputs_[0];
    // A line's place in a chase is its second word.
    std::uint64_t* word = target.as<std::uint64_t>() + elements_ / 2 / doubles_per_line * doubles_per_line + 1;
    const Buffer host = context_->device.allocate(sizeof(std::uint64_t), Memory::pinned);
    read_back(host.data(), word, sizeof(std::uint64_t));
    *host.as<std::uint64_t>() ^= std::uint64_t{1} << 50;
    context_->device.copy(word, host.data(), sizeof(std::uint64_t), *stream_);
    stream_->synchronize();
  }

  void read_back(void* to, const void* from, std::size_t bytes) {
    context_->device.copy(to, from, bytes, *stream_);
    stream_->synchronize();
  }
  double element(const double* at) {
    double value = 0;
    read_back(&value, at, sizeof value);
    return value;
  }

  // Counts the wrong elements of one array on the device.
  double wrong_in(const Buffer& buffer, int array, std::vector<std::string>& detail) {
    const Buffer found = context_->device.allocate(sizeof(Wrong));
    context_->device.zero(found.data(), sizeof(Wrong), *stream_);
    kernels_->compare(buffer.as<double>(), info_.op, array, elements_, found.as<Wrong>(), *stream_);
    Wrong wrong;
    read_back(&wrong, found.data(), sizeof wrong);
    std::vector<std::uint64_t> places(wrong.place, wrong.place + std::min<std::uint64_t>(wrong.count, Wrong::kept));
    std::sort(places.begin(), places.end());
    for (const std::uint64_t i : places)
      detail.push_back(fmt::format("element {} is {}, not {}", i, element(buffer.as<double>() + i),
                                   array < output_array ? input(array, i) : expected(info_.op, i)));
    return static_cast<double>(wrong.count);
  }

  double check_arrays(std::vector<std::string>& detail) {
    if (info_.stores) return wrong_in(output_, output_array, detail);
    double wrong = 0;
    for (int i = 0; i < info_.inputs; ++i) wrong += wrong_in(inputs_[static_cast<std::size_t>(i)], i, detail);
    double right = 0;  // integers far below 2^53: exact in any order
    for (std::size_t i = 0; i < elements_; ++i) right += info_.op == Op::dot ? input(0, i) * input(1, i) : input(0, i);
    right *= static_cast<double>(passes_);
    if (const double sum = element(sum_.as<double>()); sum != right) {
      wrong += 1;
      detail.push_back(fmt::format("the sum of {} passes is {}, not {}", passes_, sum, right));
    }
    return wrong;
  }

  double check_cycle(std::vector<std::string>& detail) {
    const Buffer host = context_->device.allocate(array_bytes(), Memory::host);
    read_back(host.data(), inputs_[0].data(), array_bytes());
    const void* end = nullptr;
    read_back(&end, position_.data(), sizeof end);
    const std::ptrdiff_t line = static_cast<const Line*>(end) - inputs_[0].as<Line>();
    relocate(host.as<Line>(), inputs_[0].as<Line>(), host.as<Line>());
    // A damaged link must not lead outside the buffer.
    for (std::size_t i = 0; i < lines(); ++i)
      if (host.as<Line>()[i].next < host.as<Line>() || host.as<Line>()[i].next >= host.as<Line>() + lines()) {
        detail.push_back(fmt::format("line {} leads out of the array", i));
        return static_cast<double>(lines());
      }
    auto wrong = static_cast<double>(wrong_lines(host.as<Line>(), lines()));
    if (wrong > 0) detail.push_back(fmt::format("{} lines out of order in the cycle", wrong));
    const bool inside = line >= 0 && static_cast<std::size_t>(line) < lines();
    const std::uint64_t place = inside ? host.as<Line>()[line].place : std::numeric_limits<std::uint64_t>::max();
    if (place != hops_ % lines()) {
      wrong += 1;
      detail.push_back(fmt::format("{} hops ended at place {}, not {}", hops_, place, hops_ % lines()));
    }
    return wrong;
  }

  OpInfo info_;
  std::size_t elements_;
  Context* context_ = nullptr;
  std::unique_ptr<DeviceKernels> kernels_;
  std::unique_ptr<Stream> stream_;
  std::string_view level_;  // the level of L2; empty: the arrays exceed it
  std::array<Buffer, 2> inputs_;
  Buffer output_, sum_, scratch_, position_;
  Arrays arrays_;
  Variant variant_;
  std::uint64_t passes_ = 1;  // over the arrays per repetition
  std::uint64_t hops_ = 0;    // so far
};

}  // namespace

std::unique_ptr<Case> make_cuda_case(const Params& params) { return std::make_unique<CudaMemoryCase>(params); }

}  // namespace assay::memory
