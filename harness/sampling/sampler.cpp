// The sampler's form `repeat`, and what all forms share.
#include "harness/sampling/sampler.h"

#include "harness/comm/gather.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/device/gate.h"
#include "harness/sampling/sampler_run.h"
#include "harness/trace/trace.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

constexpr int max_first_touch = 32;  // single calls timed during warm-up
constexpr int min_single_calls = 9;  // collectives after the measurement
constexpr int max_single_calls = 1000;
constexpr double single_calls_share = 0.02;          // of the time that sampling took
constexpr std::int64_t max_repetitions = 1'000'000;  // per sample: work that takes no time would grow forever
constexpr std::int64_t max_gated_launches = 400;     // the queue of 1,024 launches must not fill behind a closed gate
constexpr double min_slot_bytes = 64;                // a cache line
constexpr double largest_gpu_cache = 128.0 * (1 << 20);  // B200: 126 MiB of L2

// Enough for batches that the timer measures well, at a cost in memory and set-up that does not grow with the cache. A
// GPU's L2 is small beside its memory: there only the number is limited.
double max_slots(DeviceKind kind, double slot_bytes) {
  constexpr double max_count = 4096, max_cpu_bytes = 64.0 * (1 << 20);
  return kind == DeviceKind::cpu ? std::clamp(std::floor(max_cpu_bytes / slot_bytes), 1.0, max_count) : max_count;
}

// One more than fills twice the cache: other slots of that size pass before a slot is used again.
double slots_beyond(double cache_bytes, double slot_bytes) { return std::ceil(2.0 * cache_bytes / slot_bytes) + 1; }

Sampler::Clock steady_clock_from(std::chrono::steady_clock::time_point started) {
  return [started] { return seconds_since(started); };
}

}  // namespace

Sampler::Sampler(Device& device, Communicator& comm, const Protocol& protocol,
                 std::chrono::steady_clock::time_point started)
    : Sampler(device, comm, protocol, steady_clock_from(started)) {}

Sampler::Sampler(Device& device, Communicator& comm, const Protocol& protocol, Clock clock)
    : device_(device),
      world_(comm),
      comm_(&comm),
      own_protocol_(protocol),
      protocol_(&own_protocol_),
      clock_(std::move(clock)),
      stream_(device.make_stream()) {}

Rotation Sampler::rotation(const Device& device, const Protocol& protocol, std::uint64_t bytes) {
  if (protocol.cache == Protocol::Cache::hot) return {};
  const double slot = std::max(static_cast<double>(bytes), min_slot_bytes);
  const double limit = max_slots(device.kind(), slot);
  const double enough = slots_beyond(static_cast<double>(device.info().last_level_cache_bytes), slot);
  return {static_cast<int>(std::min(enough, limit)), enough <= limit};
}

double Sampler::max_rotation_bytes(DeviceKind kind, double bytes) {
  const double slot = std::max(bytes, min_slot_bytes);
  const double limit = max_slots(kind, slot);
  return bytes * (kind == DeviceKind::cpu ? limit : std::min(slots_beyond(largest_gpu_cache, slot), limit));
}

bool Sampler::any(bool value) { return comm_->max_of(value ? 1.0 : 0.0) > 0.5; }

void Sampler::begin() {
  measurement_ = {};
  own_.clear();
  paces_.clear();
  waited_ = 0;
  watch_ = {};
}

void Sampler::finish(std::vector<double> values, StopReason stopped_by) {
  measurement_.values = std::move(values);
  measurement_.stopped_by = stopped_by;
  measurement_.summary = summarize(measurement_.values);
  measurement_.rank_medians = gather(*comm_, median(own_));
  // The lower quartile: disturbances of some samples do not make a rank slow.
  std::vector<double>& paces = paces_.empty() ? own_ : paces_;
  measurement_.rank_paces = gather(*comm_, paces.empty() ? 0.0 : quantile(paces, 0.25));
  gather_disturbed();
}

void Sampler::keep_pace(double seconds) { paces_.push_back(std::max(0.0, seconds - std::exchange(waited_, 0.0))); }

// All ranks' disturbed samples, each once.
void Sampler::gather_disturbed() {
  constexpr int padding = -1;
  std::vector<int> own = disturbed_samples(watch_.samples());
  own.resize(static_cast<std::size_t>(comm_->max_of(static_cast<double>(own.size()))), padding);
  if (own.empty()) return;
  auto& all = measurement_.disturbed;
  all.resize(own.size() * static_cast<std::size_t>(comm_->size()));
  comm_->all_gather_host(own.data(), all.data(), own.size() * sizeof(int));
  std::erase(all, padding);
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

// Keeps each rank's own median and pace, and the slowest rank's series.
void Sampler::join_turns() {
  std::vector<double> medians = gather(world_, measurement_.rank_medians.front());
  std::vector<double> paces = gather(world_, measurement_.rank_paces.front());
  const double from = measurement_.window_start, to = from + measurement_.window_seconds;
  copy_from(static_cast<int>(std::ranges::max_element(medians) - medians.begin()));
  measurement_.rank_medians = std::move(medians);
  measurement_.rank_paces = std::move(paces);
  measurement_.own_window = {from, to};
}

void Sampler::copy_from(int rank) {
  const auto root = static_cast<std::size_t>(rank);
  struct Scalars {
    std::size_t lengths[5];
    std::int64_t repetitions;
    StopReason stopped_by;
    double window_start, window_seconds, items;
  };
  Measurement& m = measurement_;
  const Scalars own{{m.values.size(), m.at.size(), m.first_touch.size(), m.disturbed.size(), m.pieces.size()},
                    m.repetitions,
                    m.stopped_by,
                    m.window_start,
                    m.window_seconds,
                    m.items};
  const Scalars from = gather(world_, own)[root];
  m.repetitions = from.repetitions;
  m.stopped_by = from.stopped_by;
  m.window_start = from.window_start;
  m.window_seconds = from.window_seconds;
  m.items = from.items;
  // Many values per call, since ranks that share a core take long for each call; but a bounded number.
  const auto copy_list = [&](auto& list, std::size_t length) {
    using Value = typename std::decay_t<decltype(list)>::value_type;
    constexpr std::size_t max_values = 1024;
    list.resize(length);
    std::vector<Value> all;
    for (std::size_t first = 0, count = 0; first < length; first += count) {
      count = std::min(max_values, length - first);
      all.resize(count * static_cast<std::size_t>(world_.size()));
      world_.all_gather_host(list.data() + first, all.data(), count * sizeof(Value));
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(root * count), count,
                  list.begin() + static_cast<std::ptrdiff_t>(first));
    }
  };
  copy_list(m.values, from.lengths[0]);
  copy_list(m.at, from.lengths[1]);
  copy_list(m.first_touch, from.lengths[2]);
  copy_list(m.disturbed, from.lengths[3]);
  copy_list(m.pieces, from.lengths[4]);
  m.samples_of = rank;
  m.summary = summarize(m.values);
}

template <typename Form>
void Sampler::in_turn(const Form& form) {
  if (!turns_ || world_.size() == 1) return form();
  const std::unique_ptr<Communicator> alone = make_self_communicator();
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (rank == world_.rank()) {
      comm_ = alone.get();
      form();
      comm_ = &world_;
    }
    world_.barrier();
  }
  join_turns();
}

void Sampler::repeat(const Rotation& rotation, const Work& fn, const Buffers& buffers) {
  in_turn([&] { repeat_here(rotation, fn, buffers); });
}
void Sampler::steps(const std::function<void(std::int64_t)>& fn) {
  in_turn([&] { steps_here(fn); });
}
void Sampler::window(const std::function<std::int64_t()>& fn) {
  in_turn([&] { window_here(fn); });
}
void Sampler::procedure(const std::function<std::vector<double>()>& fn) {
  in_turn([&] { procedure_here(fn); });
}

// One sample of `repeat`: what to call, how often, and on which slot.
struct Sampler::Repetition {
  Sampler& sampler;
  const Work& fn;
  const Buffers& buffers;
  int slots;
  bool single;  // one call per sample
  bool evict;   // the slots of each sample, before it
  std::unique_ptr<Event> start, stop;
  std::int64_t max_gated;  // calls behind the gate; 0: no gate
  std::int64_t max_calls;  // per sample
  int slot = 0;
  bool gated = false;
  bool timed_out = false;  // the last sample's gate has opened by itself

  // Seconds of `count` back-to-back calls on this rank; all ranks start together.
  double time(std::int64_t count, DisturbanceWatch* watch = nullptr) {
    Stream& stream = *sampler.stream_;
    const bool behind_gate = gated && count <= max_gated;
    // Evict first: ranks finish it at different times.
    if (evict) evict_next(stream, count);
    // Its readings take microseconds that differ between ranks: before the barrier, or the first call would wait for
    // the last rank to read.
    if (watch) watch->before();
    if (sampler.comm_->size() > 1) {
      sampler.comm_->barrier();
      sampler.comm_->line_up(stream);
    }
    Gate gate(sampler.device_, stream, behind_gate);
    start->record(stream);
    for (std::int64_t i = 0; i < count; ++i) {
      sampler.run([&] { fn(stream, slot); });
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    stop->record(stream);
    gate.open();
    stop->synchronize();
    if (watch) watch->after();
    timed_out = behind_gate && sampler.device_.gate_timed_out();
    return stop->seconds_since(*start);
  }

  // The slots of the next `count` calls.
  void evict_next(Stream& stream, std::int64_t count) const {
    std::vector<MemoryRange> ranges;
    for (int i = 0; i < std::min<std::int64_t>(count, slots); ++i) {
      const std::vector<MemoryRange> of_slot = buffers((slot + i) % slots);
      ranges.insert(ranges.end(), of_slot.begin(), of_slot.end());
    }
    sampler.device_.evict(stream, ranges);
  }
};

// Returns the number of calls per sample, on which the ranks have agreed.
std::int64_t Sampler::warm_up(Repetition& work) {
  const trace::Span phase(trace::Category::phase, "warm-up");
  const double start = clock_();
  const auto spent = [&] { return clock_() - start; };
  if (measurement_.first_touch.empty()) {
    // Touch every slot once, call by call, unless that takes too much of the measuring time.
    const double touch_seconds = std::max(protocol_->warmup_seconds, 0.25 * protocol_->max_seconds);
    const auto touches = static_cast<int>(comm_->max_of(std::min(work.slots, max_first_touch)));
    for (int i = 0; i < touches; ++i) {
      measurement_.first_touch.push_back(work.time(1));
      if (any(spent() >= touch_seconds)) break;
    }
  }
  // Warm up by samples that grow until one spans the shortest time that the timer measures reliably.
  std::int64_t repetitions = 1;
  work.gated = false;
  for (bool more = !work.single || any(spent() < protocol_->warmup_seconds); more;) {
    const bool ungated = work.max_gated > 0 && !work.gated;
    const double seconds = work.time(repetitions);
    work.gated = work.max_gated > 0;
    const std::int64_t limit = std::min(work.max_gated > 0 ? work.max_gated : max_repetitions, work.max_calls);
    const double wanted = device_.shortest_sample();
    const bool too_short = !work.single && (seconds < wanted || ungated) && repetitions < limit;
    std::int64_t next = repetitions;
    if (too_short) {
      const double growth = std::clamp(1.25 * wanted / std::max(seconds, 1e-12), 1.0, 10.0);
      next = std::min(limit, 1 + static_cast<std::int64_t>(growth * static_cast<double>(repetitions)));
    }
    double agreed[] = {static_cast<double>(next), too_short || spent() < protocol_->warmup_seconds ? 1.0 : 0.0,
                       work.timed_out ? 1.0 : 0.0};
    max_over_ranks(*comm_, agreed);
    if (agreed[2] > 0) {
      use_gate_less(work, repetitions);
      repetitions = 1;
      continue;
    }
    repetitions = static_cast<std::int64_t>(agreed[0]);
    more = agreed[1] > 0;
  }
  return repetitions;
}

// After a gate has opened by itself behind `repetitions` calls: either they filled the queue of launches, so that the
// host waited for the device, or one of them waits for it in any case.
void Sampler::use_gate_less(Repetition& work, std::int64_t repetitions) {
  work.max_gated = std::min(work.max_gated, repetitions / 2);
  work.gated = work.max_gated > 0;
  limit_gate(work.max_gated);
}

void Sampler::limit_gate(std::int64_t calls) {
  measurement_.max_gated = std::min(measurement_.max_gated.value_or(calls), calls);
}

// False if a gate has opened by itself: no sample counts then.
bool Sampler::sample(Repetition& work, std::int64_t repetitions, StopRule& rule) {
  rule = StopRule(*protocol_);
  own_.clear();
  measurement_.at.clear();
  watch_ = {};
  DisturbanceWatch* watch = device_.kind() == DeviceKind::cpu ? &watch_ : nullptr;
  const double start = clock_();
  for (bool enough = false; !enough;) {
    const trace::Span span(trace::Category::sample, "sample", static_cast<std::int64_t>(own_.size()));
    measurement_.at.push_back(clock_());
    own_.push_back(work.time(repetitions, watch) / static_cast<double>(repetitions));
    double agreed[] = {own_.back(), clock_() - start, work.timed_out ? 1.0 : 0.0};
    max_over_ranks(*comm_, agreed);
    if (agreed[2] > 0) return false;
    enough = rule.add(agreed[0], agreed[1]);
  }
  measurement_.window_start = start;
  measurement_.window_seconds = clock_() - start;
  measurement_.repetitions = repetitions;
  return true;
}

// A batch hides how much its calls differ, and the pace of each rank.
void Sampler::time_single_calls(Repetition& work, bool batched) {
  const double start = clock_();
  const auto time = [&](int calls) {
    for (int i = 0; i < calls; ++i) paces_.push_back(work.time(1));
  };
  time(min_single_calls);
  double agreed[] = {measurement_.window_seconds, clock_() - start};
  max_over_ranks(*comm_, agreed);
  const double calls = min_single_calls * single_calls_share * agreed[0] / std::max(agreed[1], 1e-9);
  if (batched) time(static_cast<int>(std::clamp<double>(calls, min_single_calls, max_single_calls)) - min_single_calls);
  measurement_.single_calls = paces_;
  max_over_ranks(*comm_, measurement_.single_calls);
}

void Sampler::repeat_here(const Rotation& rotation, const Work& fn, const Buffers& buffers) {
  ASSAY_CHECK(rotation.slots >= 1, "a case repeats on {} slots", rotation.slots);
  begin();
  const bool isolated = protocol_->batching == Protocol::Batching::isolated;
  const bool evict = protocol_->cache == Protocol::Cache::cold && (isolated || !rotation.exceeds_cache);
  ASSAY_CHECK(!evict || buffers, "a cold case must name its buffers");
  const int slots = protocol_->cache == Protocol::Cache::hot ? 1 : rotation.slots;
  // The same on all ranks, whose caches may differ in size.
  const double max_calls = -comm_->max_of(evict ? -slots : -static_cast<double>(max_repetitions));
  // An injected straggler synchronises after each call, which a gate would block.
  const std::int64_t launches = slow_ ? 0 : protocol_->gated_launches();
  Repetition work{*this,
                  fn,
                  buffers,
                  slots,
                  isolated,
                  evict,
                  device_.make_event(),
                  device_.make_event(),
                  launches > 0 ? max_gated_launches / launches : 0,
                  static_cast<std::int64_t>(max_calls)};
  StopRule rule(*protocol_);
  std::int64_t repetitions = warm_up(work);
  while (!sample(work, repetitions, rule)) {
    use_gate_less(work, repetitions);
    repetitions = warm_up(work);
  }
  if (collective_ && comm_->size() > 1) time_single_calls(work, repetitions > 1);
  if (collective_ && repetitions == 1) measurement_.single_calls = rule.values();
  finish(rule.values(), *rule.stopped_by());
}

}  // namespace assay
