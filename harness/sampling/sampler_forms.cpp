// The sampler's forms steps, window and procedure, timed by the sampler's clock: their work ends when the call returns.
#include "harness/comm/gather.h"
#include "harness/core/error.h"
#include "harness/sampling/sampler.h"
#include "harness/sampling/sampler_run.h"
#include "harness/trace/trace.h"

namespace assay {

void Sampler::steps_here(const std::function<void(std::int64_t)>& fn) {
  begin();
  std::int64_t step = 0;
  double step_seconds = 0;  // time of a step on the slowest rank, at the last agreement
  const auto time = [&] {
    const trace::Span span(trace::Category::sample, "step", step);
    const double start = clock_();
    run([&] { fn(step); });
    ++step;
    return clock_() - start;
  };
  {
    const trace::Span phase(trace::Category::phase, "warm-up");
    const double start = clock_();
    double agreed[2] = {};
    do {
      measurement_.first_touch.push_back(time());
      agreed[0] = measurement_.first_touch.back();
      agreed[1] = clock_() - start < protocol_->warmup_seconds ? 1 : 0;
      max_over_ranks(*comm_, agreed);
    } while (agreed[1] > 0);
    step_seconds = agreed[0];
  }

  StopRule rule(*protocol_);
  const bool watched = device_.kind() == DeviceKind::cpu;
  const bool alone = comm_->size() == 1;
  if (!alone) comm_->barrier();
  const double start = clock_();
  measurement_.window_start = start;
  std::vector<double> batch;  // the steps' times, then the time spent so far; of the slowest rank once agreed
  for (bool enough = false; !enough;) {
    const double before = measurement_.window_seconds;
    // A device idles while its ranks agree.
    const std::size_t steps = alone ? 1 : rule.next_batch(step_seconds, before);
    batch.clear();
    while (batch.size() < steps) {
      measurement_.at.push_back(clock_());
      if (watched) watch_.before();
      waited_ = 0;
      own_.push_back(time());
      if (watched) watch_.after();
      keep_pace(own_.back());
      batch.push_back(own_.back());
    }
    batch.push_back(clock_() - start);
    max_over_ranks(*comm_, batch);
    measurement_.window_seconds = batch.back();
    batch.pop_back();
    step_seconds = (measurement_.window_seconds - before) / static_cast<double>(steps);
    enough = rule.add(batch, measurement_.window_seconds);
  }
  finish(rule.values(), *rule.stopped_by());
}

void Sampler::window_here(const std::function<std::int64_t()>& fn) {
  begin();
  std::int64_t delivered = 0;
  const auto call = [&] { run([&] { delivered += fn(); }); };
  {
    const trace::Span phase(trace::Category::phase, "warm-up");
    const double start = clock_();
    do {
      const double before = clock_();
      call();
      if (measurement_.first_touch.empty()) measurement_.first_touch.push_back(clock_() - before);
    } while (any(clock_() - start < protocol_->warmup_seconds));
  }

  StopRule rule(*protocol_);
  const double piece_seconds = std::min(1.0, protocol_->max_seconds / 10.0);
  if (comm_->size() > 1) comm_->barrier();
  const double start = clock_();
  for (bool enough = false; !enough;) {
    const trace::Span span(trace::Category::sample, "piece", static_cast<std::int64_t>(own_.size()));
    const double piece_start = clock_();
    measurement_.at.push_back(piece_start);
    delivered = 0;
    double seconds = 0;
    do {
      call();
      seconds = clock_() - piece_start;
    } while (seconds < piece_seconds || (delivered == 0 && seconds < protocol_->max_seconds));
    own_.push_back(seconds / static_cast<double>(delivered));
    struct Piece {
      double items, seconds, elapsed;
    };
    Piece whole{};
    for (const Piece& each : gather(*comm_, Piece{static_cast<double>(delivered), seconds, clock_() - start})) {
      if (each.items == 0)
        throw Error(fmt::format("the work delivered no item in {:.1f} s on one of the ranks", protocol_->max_seconds));
      whole.items += each.items;
      whole.seconds = std::max(whole.seconds, each.seconds);
      whole.elapsed = std::max(whole.elapsed, each.elapsed);
    }
    measurement_.items += whole.items;
    measurement_.pieces.push_back(whole.items / whole.seconds);
    measurement_.window_start = start;
    measurement_.window_seconds = whole.elapsed;
    enough = rule.add(whole.seconds / whole.items, whole.elapsed);
  }
  finish(rule.values(), *rule.stopped_by());
}

void Sampler::procedure_here(const std::function<std::vector<double>()>& fn) {
  begin();
  const double start = clock_();
  run([&] { own_ = fn(); });
  keep_pace(clock_() - start);
  measurement_.window_start = start;
  measurement_.window_seconds = comm_->max_of(clock_() - start);
  const double count = static_cast<double>(own_.size());
  const double max = comm_->max_of(count);
  if (any(count == 0 || count < max)) throw Error("a procedure gave no samples, or fewer on one rank than on another");
  std::vector<double> values = own_;
  max_over_ranks(*comm_, values);
  finish(std::move(values), StopReason::done);
}

}  // namespace assay
