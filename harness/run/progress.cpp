// Progress lines.
#include "harness/run/progress.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

std::string headline(const Record& record) {
  if (record.status != Status::ok) return fmt::format("{}: {}", name_of(record.status), first_line(record.reason));
  for (const Metric& metric : record.metrics)
    if (metric.value) return format_quantity(*metric.value, metric.unit);
  return "ok";
}

Progress::Progress() : started_(Clock::now()), case_started_(started_) {}

void Progress::start(std::size_t cases, double seconds) {
  cases_ = cases;
  all_seconds_ = left_seconds_ = seconds;
  started_ = case_started_ = Clock::now();
}

void Progress::begin(const std::string& key, int ranks, double estimated_seconds) {
  key_ = ranks == 1 ? key : fmt::format("{} x {} ranks", key, ranks);
  phase_.clear();
  case_seconds_ = estimated_seconds;
  case_started_ = Clock::now();
  tick();
}

void Progress::phase(const std::string& name) { phase_ = name; }

void Progress::finish(const Record& record) {
  ++done_;
  left_seconds_ = std::max(0.0, left_seconds_ - case_seconds_);
  last_ = headline(record);
  // A case that never began has no record of its own time here.
  const double took = key_.starts_with(record.key) ? since(case_started_) : record.seconds;
  live_.note(fmt::format("[{}/{}] {}  {}  ({})", done_, cases_, key_.starts_with(record.key) ? key_ : record.key, last_,
                         format_seconds(took)));
}

void Progress::note(const std::string& text) { live_.note(text); }

void Progress::tick() {
  if (!live_.shown() || key_.empty()) return;
  const double spent = std::min(since(case_started_), case_seconds_), elapsed = since(started_);
  // Where cases take longer than estimated, so will the others.
  const double planned = all_seconds_ - left_seconds_ + spent, left = left_seconds_ - spent;
  const double pace = planned > 0 ? std::max(1.0, elapsed / planned) : 1;
  std::string line = fmt::format(
      "[{}/{}] {}{}  {} elapsed, {}", std::min(done_ + 1, cases_), cases_, key_, phase_.empty() ? "" : ", " + phase_,
      format_seconds(elapsed),
      left > 0 ? fmt::format("about {} left", format_seconds(left * pace)) : std::string("longer than estimated"));
  if (!last_.empty()) line += fmt::format("; last {}", last_);
  live_.draw(line);
}

}  // namespace assay
