// The sampler's form `repeat`, and what all forms share.
#include "harness/measure/sampler.h"

#include "harness/core/error.h"
#include "harness/measure/sampler_run.h"
#include "harness/measure/stop_rule.h"
#include "harness/trace/trace.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

constexpr int most_first_touch = 32;                  // single calls timed and reported before warm-up
constexpr std::int64_t most_repetitions = 1'000'000;  // a sample; work that takes no time would grow for ever

Sampler::Clock steady_clock_from(std::chrono::steady_clock::time_point started) {
  return [started] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(); };
}

}  // namespace

Sampler::Sampler(Device& device, Communicator& comm, const Protocol& protocol,
                 std::chrono::steady_clock::time_point started)
    : Sampler(device, comm, protocol, steady_clock_from(started)) {}

Sampler::Sampler(Device& device, Communicator& comm, const Protocol& protocol, Clock clock)
    : device_(device), comm_(comm), protocol_(protocol), clock_(std::move(clock)), stream_(device.make_stream()) {}

int Sampler::rotation_slots(const Device& device, const Protocol& protocol, std::uint64_t bytes, double times) {
  if (protocol.cache == "hot") return 1;
  constexpr std::uint64_t line = 64;
  const double cache = times * static_cast<double>(device.info().last_level_cache_bytes);
  // One more than fills the cache, so that a slot's turn comes after that much of others.
  return static_cast<int>(std::ceil(cache / static_cast<double>(std::max(bytes, line)))) + 1;
}

bool Sampler::any(bool yes) { return comm_.max_of(yes ? 1.0 : 0.0) > 0.5; }

double Sampler::sum_of(double value) {
  double sum = 0;
  for (int rank = 0; rank < comm_.size(); ++rank) sum += comm_.broadcast_value(value, rank);
  return sum;
}

void Sampler::begin() {
  measurement_ = {};
  own_.clear();
  watch_ = {};
}

void Sampler::finish(std::vector<double> values, std::string stopped_by) {
  measurement_.values = std::move(values);
  measurement_.stopped_by = std::move(stopped_by);
  measurement_.summary = summarize(measurement_.values);
  const double own = median(own_);
  for (int rank = 0; rank < comm_.size(); ++rank) measurement_.rank_medians.push_back(comm_.broadcast_value(own, rank));
  gather_disturbed();
}

// Each rank tells its list in turn; they are short.
void Sampler::gather_disturbed() {
  const std::vector<int> own = disturbed_samples(watch_.samples());
  for (int rank = 0; rank < comm_.size(); ++rank) {
    const auto count = static_cast<std::size_t>(comm_.broadcast_value(static_cast<double>(own.size()), rank));
    for (std::size_t i = 0; i < count; ++i) {
      const double index = rank == comm_.rank() ? own[i] : 0;
      measurement_.disturbed.push_back(static_cast<int>(comm_.broadcast_value(index, rank)));
    }
  }
  auto& all = measurement_.disturbed;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

// One sample of `repeat`: what to call, how often, and the turn of the slots.
struct Sampler::Repetition {
  Sampler& sampler;
  const std::function<void(Stream&, int)>& fn;
  int slots;
  bool flush;
  std::unique_ptr<Event> start, stop;
  int slot = 0;

  // Seconds of `count` back-to-back calls on this rank; all ranks set out together.
  double time(std::int64_t count, DisturbanceWatch* watch = nullptr) {
    Stream& stream = *sampler.stream_;
    // The flush comes first: ranks leave it at different times.
    if (flush) sampler.device_.flush_cache(stream);
    // Its readings take microseconds, different ones on each rank: before the barrier, or the first call would wait for
    // the rank that reads last.
    if (watch) watch->before();
    if (sampler.comm_.size() > 1) sampler.comm_.barrier();
    start->record(stream);
    for (std::int64_t i = 0; i < count; ++i) {
      sampler.run([&] { fn(stream, slot); });
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    stop->record(stream);
    stop->synchronize();
    if (watch) watch->after();
    return stop->seconds_since(*start);
  }
};

void Sampler::repeat(int slots, const std::function<void(Stream&, int)>& fn) {
  ASSAY_CHECK(slots >= 1, "a case repeats on {} slots", slots);
  begin();
  const bool cold = protocol_.cache == "cold";
  const bool isolated = protocol_.batching == "isolated";
  const bool single = isolated || (cold && slots == 1);
  Repetition work{
      *this, fn, protocol_.cache == "hot" ? 1 : slots, cold && single, device_.make_event(), device_.make_event()};

  std::int64_t repetitions = 1;
  {
    const trace::Span phase(trace::Category::phase, "warm-up");
    const double start = clock_();
    const auto spent = [&] { return clock_() - start; };
    // Every slot is touched once, call by call, as long as that does not eat the measuring time.
    const double patience = std::max(protocol_.warmup_seconds, 0.25 * protocol_.max_seconds);
    const auto touches = static_cast<int>(comm_.max_of(std::min(work.slots, most_first_touch)));
    for (int i = 0; i < touches; ++i) {
      measurement_.first_touch.push_back(work.time(1));
      if (any(spent() >= patience)) break;
    }
    // Warm-up goes on in samples, growing until one spans the shortest time that the timer can be trusted with.
    while (any(spent() < protocol_.warmup_seconds) || !single) {
      const double seconds = work.time(repetitions);
      const double wanted = device_.shortest_sample();
      const bool too_short = !single && seconds < wanted && repetitions < most_repetitions;
      std::int64_t next = repetitions;
      if (too_short) {
        const double growth = std::clamp(1.25 * wanted / std::max(seconds, 1e-12), 1.0, 10.0);
        next = std::min(most_repetitions, 1 + static_cast<std::int64_t>(growth * static_cast<double>(repetitions)));
      }
      repetitions = static_cast<std::int64_t>(comm_.max_of(static_cast<double>(next)));
      if (!any(too_short || spent() < protocol_.warmup_seconds)) break;
    }
  }

  StopRule rule(protocol_);
  DisturbanceWatch* watch = device_.kind() == DeviceKind::cpu ? &watch_ : nullptr;
  const double start = clock_();
  for (bool enough = false; !enough;) {
    const trace::Span span(trace::Category::sample, "sample", static_cast<std::int64_t>(own_.size()));
    measurement_.at.push_back(clock_());
    own_.push_back(work.time(repetitions, watch) / static_cast<double>(repetitions));
    const double slowest = comm_.max_of(own_.back());
    enough = rule.add(slowest, comm_.max_of(clock_() - start));
  }
  measurement_.window_seconds = clock_() - start;
  measurement_.repetitions = repetitions;
  finish(rule.values(), rule.stopped_by());
}

}  // namespace assay
