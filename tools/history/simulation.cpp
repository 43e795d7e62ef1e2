#include "tools/history/simulation.h"

#include <fmt/core.h>
#include <boost/math/distributions/binomial.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>

namespace assay::history {

namespace {

constexpr long deadlines[] = {7, 14, 30};
std::size_t broken = 0;

}  // namespace

std::size_t binomial_limit(std::size_t n, double chance) {
  if (n == 0) return 0;
  const boost::math::binomial cases(static_cast<double>(n), chance);
  return static_cast<std::size_t>(boost::math::quantile(boost::math::complement(cases, 1e-4)));
}

void bound(bool holds, const std::string& what) {
  if (holds) return;
  fmt::print(stderr, "broken bound: {}\n", what);
  ++broken;
}

void parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (std::size_t k = next++; k < count; k = next++) work(k);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::size_t broken_bounds() { return broken; }

Track track_of(std::vector<double> values, double scale) {
  Track track{.nights = {}, .values = std::move(values)};
  for (std::size_t i = 0; i < track.values.size(); ++i) {
    track.nights.push_back(first_night + static_cast<Night>(i));
    track.values[i] *= scale;
  }
  return track;
}

Walked walked(const Track& track, const Options& options) {
  Walked made;
  walk(track, options, {.first = track.nights.front(), .last = track.nights.back()}, made);
  return made;
}

std::vector<const Trial*> alarms_of(const Walked& made, const Options& options, std::size_t tests) {
  std::vector<const Trial*> alarms;
  for (const Trial& trial : made.trials) {
    if (trial.p > options.false_alarms / static_cast<double>(tests) || !may_alarm(trial, options, tests)) continue;
    if (std::none_of(alarms.begin(), alarms.end(), [&](const Trial* a) { return a->change == trial.change; }))
      alarms.push_back(&trial);
  }
  return alarms;
}

std::string row(const std::string& head, const std::vector<std::string>& cells) {
  std::string text = "| " + head + " |";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}
std::string rule(std::size_t cells) {
  std::string text = "|---|";
  for (std::size_t i = 0; i < cells; ++i) text += "---|";
  return text + "\n";
}
double share_of(std::size_t n, std::size_t of) {
  return of == 0 ? 0 : static_cast<double>(n) / static_cast<double>(of);
}

std::string rate(double x) { return x == 0 ? "0" : x < 0.01 ? fmt::format("{:.5f}", x) : fmt::format("{:.2f}", x); }

void add_alarm(const Walked& made, std::size_t at, double shift, std::size_t tests, const Options& options,
               Found& found) {
  for (const Trial* alarm : alarms_of(made, options, tests)) {
    const Change& change = made.changes[alarm->change].change;
    const long age = alarm->night - first_night - static_cast<long>(at) + 1;
    const long off = std::abs(static_cast<long>(change.first_after - first_night) - static_cast<long>(at));
    if (age < 1 || off > 20 || (alarm->shift > 0) != (shift > 0)) continue;
    for (int k = 0; k < 3; ++k) found.within[k] += age <= deadlines[k];
    ++found.found;
    found.exact += off == 0;
    found.near += off <= 2;
    found.covered += change.interval.low <= shift && shift <= change.interval.high;
    return;
  }
}

}  // namespace assay::history
