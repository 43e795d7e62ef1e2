// The sampler's form `repeat`, and what all forms share.
#include "harness/sampling/sampler.h"

#include "harness/core/error.h"
#include "harness/device/gate.h"
#include "harness/sampling/sampler_run.h"
#include "harness/sampling/stop_rule.h"
#include "harness/trace/trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

namespace assay {

namespace {

constexpr int max_first_touch = 32;                  // single calls timed and reported before warm-up
constexpr int single_calls = 9;                      // of collectives, after the measurement, to tell ranks' paces
constexpr std::int64_t max_repetitions = 1'000'000;  // a sample; work that takes no time would grow for ever
constexpr std::int64_t max_gated_launches = 400;     // a queue of 1,024 launches must never fill behind a closed gate

Sampler::Clock steady_clock_from(std::chrono::steady_clock::time_point started) {
  return [started] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(); };
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

int Sampler::rotation_slots(const Device& device, const Protocol& protocol, std::uint64_t bytes, double times) {
  if (protocol.cache == "hot") return 1;
  constexpr std::uint64_t line = 64;
  const double cache = times * static_cast<double>(device.info().last_level_cache_bytes);
  // One more than fills the cache, so that a slot's turn comes after that much of others.
  return static_cast<int>(std::ceil(cache / static_cast<double>(std::max(bytes, line)))) + 1;
}

bool Sampler::any(bool yes) { return comm_->max_of(yes ? 1.0 : 0.0) > 0.5; }

double Sampler::sum_of(double value) {
  double sum = 0;
  for (int rank = 0; rank < comm_->size(); ++rank) sum += comm_->broadcast_value(value, rank);
  return sum;
}

void Sampler::begin() {
  measurement_ = {};
  own_.clear();
  paces_.clear();
  waited_ = 0;
  watch_ = {};
}

void Sampler::finish(std::vector<double> values, std::string stopped_by) {
  measurement_.values = std::move(values);
  measurement_.stopped_by = std::move(stopped_by);
  measurement_.summary = summarize(measurement_.values);
  const double own = median(own_);
  for (int rank = 0; rank < comm_->size(); ++rank)
    measurement_.rank_medians.push_back(comm_->broadcast_value(own, rank));
  // The lower quartile: what disturbs some of a rank's samples does not make it slow.
  std::vector<double>& paces = paces_.empty() ? own_ : paces_;
  const double pace = paces.empty() ? 0 : quantile(paces, 0.25);
  for (int rank = 0; rank < comm_->size(); ++rank)
    measurement_.rank_paces.push_back(comm_->broadcast_value(pace, rank));
  gather_disturbed();
}

void Sampler::keep_pace(double seconds) { paces_.push_back(std::max(0.0, seconds - std::exchange(waited_, 0.0))); }

// Each rank tells its list in turn; they are short.
void Sampler::gather_disturbed() {
  const std::vector<int> own = disturbed_samples(watch_.samples());
  for (int rank = 0; rank < comm_->size(); ++rank) {
    const auto count = static_cast<std::size_t>(comm_->broadcast_value(static_cast<double>(own.size()), rank));
    for (std::size_t i = 0; i < count; ++i) {
      const double index = rank == comm_->rank() ? own[i] : 0;
      measurement_.disturbed.push_back(static_cast<int>(comm_->broadcast_value(index, rank)));
    }
  }
  auto& all = measurement_.disturbed;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

// Each rank's own series, then the slowest rank's for all.
void Sampler::join_turns() {
  const double own = measurement_.rank_medians.front();
  std::vector<double> medians;
  for (int rank = 0; rank < world_.size(); ++rank) medians.push_back(world_.broadcast_value(own, rank));
  const double own_pace = measurement_.rank_paces.front();
  std::vector<double> paces;
  for (int rank = 0; rank < world_.size(); ++rank) paces.push_back(world_.broadcast_value(own_pace, rank));
  take_from(static_cast<int>(std::max_element(medians.begin(), medians.end()) - medians.begin()));
  measurement_.rank_medians = std::move(medians);
  measurement_.rank_paces = std::move(paces);
}

void Sampler::take_from(int rank) {
  const auto take = [&](auto& value) {
    value = static_cast<std::decay_t<decltype(value)>>(world_.broadcast_value(static_cast<double>(value), rank));
  };
  // Many values a call: ranks without a core of their own take long for each.
  const auto take_list = [&](auto& list) {
    constexpr std::size_t most = 1024;
    auto count = list.size();
    take(count);
    list.resize(count);
    std::vector<double> own, all;
    for (std::size_t first = 0; first < count; first += own.size()) {
      const auto from = list.begin() + static_cast<std::ptrdiff_t>(first);
      own.assign(from, from + static_cast<std::ptrdiff_t>(std::min(most, count - first)));
      all.resize(own.size() * static_cast<std::size_t>(world_.size()));
      world_.all_gather_host(own.data(), all.data(), own.size() * sizeof(double));
      for (std::size_t i = 0; i < own.size(); ++i)
        list[first + i] = static_cast<typename std::decay_t<decltype(list)>::value_type>(
            all[own.size() * static_cast<std::size_t>(rank) + i]);
    }
  };
  take_list(measurement_.values);
  take_list(measurement_.at);
  take_list(measurement_.first_touch);
  take_list(measurement_.disturbed);
  take_list(measurement_.pieces);
  take(measurement_.repetitions);
  take(measurement_.window_start);
  take(measurement_.window_seconds);
  take(measurement_.items);
  // Words cannot be broadcast; every way of stopping has its number.
  static constexpr const char* words[] = {"noise", "plateau", "time", "count", "done"};
  double word = 0;
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (measurement_.stopped_by == words[i]) word = static_cast<double>(i);
  take(word);
  measurement_.stopped_by = words[static_cast<std::size_t>(word)];
  measurement_.summary = summarize(measurement_.values);
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

void Sampler::repeat(int slots, const std::function<void(Stream&, int)>& fn) {
  in_turn([&] { repeat_here(slots, fn); });
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

// One sample of `repeat`: what to call, how often, and the turn of the slots.
struct Sampler::Repetition {
  Sampler& sampler;
  const std::function<void(Stream&, int)>& fn;
  int slots;
  bool flush;
  std::unique_ptr<Event> start, stop;
  int slot = 0;
  bool gated = false;

  // Seconds of `count` back-to-back calls on this rank; all ranks set out together.
  double time(std::int64_t count, DisturbanceWatch* watch = nullptr) {
    Stream& stream = *sampler.stream_;
    // The flush comes first: ranks leave it at different times.
    if (flush) sampler.device_.flush_cache(stream);
    // Its readings take microseconds, different ones on each rank: before the barrier, or the first call would wait for
    // the rank that reads last.
    if (watch) watch->before();
    if (sampler.comm_->size() > 1) sampler.comm_->barrier();
    Gate gate(sampler.device_, stream, gated);
    start->record(stream);
    for (std::int64_t i = 0; i < count; ++i) {
      sampler.run([&] { fn(stream, slot); });
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    stop->record(stream);
    gate.open();
    stop->synchronize();
    if (watch) watch->after();
    return stop->seconds_since(*start);
  }
};

void Sampler::repeat_here(int slots, const std::function<void(Stream&, int)>& fn) {
  ASSAY_CHECK(slots >= 1, "a case repeats on {} slots", slots);
  begin();
  const bool cold = protocol_->cache == "cold";
  const bool isolated = protocol_->batching == "isolated";
  const bool single = isolated || (cold && slots == 1);
  Repetition work{
      *this, fn, protocol_->cache == "hot" ? 1 : slots, cold && single, device_.make_event(), device_.make_event()};
  // The straggler of a drill synchronises after each call, which a gate would hold up.
  const std::int64_t launches = slow_ ? 0 : protocol_->gated_launches();
  const std::int64_t most = launches > 0 ? std::max<std::int64_t>(1, max_gated_launches / launches) : max_repetitions;

  std::int64_t repetitions = 1;
  {
    const trace::Span phase(trace::Category::phase, "warm-up");
    const double start = clock_();
    const auto spent = [&] { return clock_() - start; };
    // Every slot is touched once, call by call, as long as that does not eat the measuring time.
    const double patience = std::max(protocol_->warmup_seconds, 0.25 * protocol_->max_seconds);
    const auto touches = static_cast<int>(comm_->max_of(std::min(work.slots, max_first_touch)));
    for (int i = 0; i < touches; ++i) {
      measurement_.first_touch.push_back(work.time(1));
      if (any(spent() >= patience)) break;
    }
    // Warm-up goes on in samples, growing until one spans the shortest time that the timer can be trusted with.
    while (any(spent() < protocol_->warmup_seconds) || !single) {
      const double seconds = work.time(repetitions);
      const bool ungated = launches > 0 && !work.gated;
      work.gated = launches > 0 && launches <= max_gated_launches;
      const double wanted = device_.shortest_sample();
      const bool too_short = !single && (seconds < wanted || ungated) && repetitions < most;
      std::int64_t next = repetitions;
      if (too_short) {
        const double growth = std::clamp(1.25 * wanted / std::max(seconds, 1e-12), 1.0, 10.0);
        next = std::min(most, 1 + static_cast<std::int64_t>(growth * static_cast<double>(repetitions)));
      }
      repetitions = static_cast<std::int64_t>(comm_->max_of(static_cast<double>(next)));
      if (!any(too_short || spent() < protocol_->warmup_seconds)) break;
    }
  }

  StopRule rule(*protocol_);
  DisturbanceWatch* watch = device_.kind() == DeviceKind::cpu ? &watch_ : nullptr;
  const double start = clock_();
  for (bool enough = false; !enough;) {
    const trace::Span span(trace::Category::sample, "sample", static_cast<std::int64_t>(own_.size()));
    measurement_.at.push_back(clock_());
    own_.push_back(work.time(repetitions, watch) / static_cast<double>(repetitions));
    const double slowest = comm_->max_of(own_.back());
    enough = rule.add(slowest, comm_->max_of(clock_() - start));
  }
  measurement_.window_start = start;
  measurement_.window_seconds = clock_() - start;
  measurement_.repetitions = repetitions;
  for (int i = 0; meet_ && comm_->size() > 1 && i < single_calls; ++i) paces_.push_back(work.time(1));
  finish(rule.values(), rule.stopped_by());
}

}  // namespace assay
