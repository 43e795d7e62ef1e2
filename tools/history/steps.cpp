// Which steps are found, and when.
#include "tools/history/tables.h"

#include "harness/history/detect/detectable.h"
#include "tools/history/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

namespace assay::history {

namespace {

// The shares found, among 300 series, that must not be missed: those of the first version, less .05.
struct Floor {
  Kind kind;
  double step;
  double in_14;
  double in_30;
};
constexpr Floor floors[] = {{Kind::iid, 0.02, 0.57, 0.90},   {Kind::iid, 0.05, 0.95, 0.95},
                            {Kind::outl, 0.02, 0.15, 0.70},  {Kind::outl, 0.05, 0.92, 0.95},
                            {Kind::mixed, 0.02, 0.20, 0.50}, {Kind::mixed, 0.05, 0.75, 0.90}};

void add(Found& total, const Found& one) {
  for (int k = 0; k < 3; ++k) total.within[k] += one.within[k];
  total.found += one.found;
  total.exact += one.exact;
  total.near += one.near;
  total.covered += one.covered;
}

std::string share_text(std::size_t n, std::size_t of) {
  return of < 20 ? std::string("–") : fmt::format("{:.2f}", share_of(n, of));
}
std::string three(const Found& found, std::size_t of) {
  return share_text(found.within[0], of) + " / " + share_text(found.within[1], of) + " / " +
         share_text(found.within[2], of);
}

// Away by the step's size for `length` nights from night `away` on, and back for at least `quiet`; the step is `after`
// nights after the return, if at all.
struct Excursion {
  Track track;
  double shift = 0;
};
Excursion excursion(Kind kind, std::size_t seed, double size, std::size_t away, std::size_t length, std::size_t quiet,
                    std::optional<std::size_t> after) {
  Stream random(seed, "excursion");
  Excursion made{track_of(noise_of(kind, away + length + quiet, 700000 + seed)),
                 std::log1p(size) * (random.chance(0.5) ? 1 : -1)};
  for (std::size_t k = away; k < made.track.values.size(); ++k)
    if (k < away + length || (after && k >= away + length + *after)) made.track.values[k] += made.shift;
  return made;
}

struct Power {
  std::size_t that_night = 0;  // suspected on the first night
  Found few, many;             // of 300 and of 10,000 series
  double detectable = 0;       // summed over series; 300 series
};

Power power_of(Kind kind, double step, std::size_t count) {
  const Options options{.tolerance = 0};
  std::vector<Power> all(count);
  parallel(count, [&](std::size_t i) {
    Stream random(i, "step");
    const std::size_t at = static_cast<std::size_t>(random.whole(150, 300));
    Track track = track_of(noise_of(kind, nights, 500000 + i));
    const double shift = std::log1p(step) * (random.chance(0.5) ? 1 : -1);
    for (std::size_t k = at; k < nights; ++k) track.values[k] += shift;
    const Walked made = walked(track, options);
    add_alarm(made, at, shift, 300, options, all[i].few);
    add_alarm(made, at, shift, 10000, options, all[i].many);
    const Night night = track.nights[at];
    track.nights.resize(at + 1);
    track.values.resize(at + 1);
    SeriesState first = walked(track, options).state;
    all[i].detectable = detectable_step(first.sigma, first.spread, options, 300);
    conclude(track, options, {.night = night, .tested = 300}, first);
    all[i].that_night = std::any_of(first.changes.begin(), first.changes.end(),
                                    [&](const Change& c) { return c.same_night && c.first_after == night; });
  });
  Power sum;
  for (const Power& one : all) {
    add(sum.few, one.few);
    add(sum.many, one.many);
    sum.that_night += one.that_night;
    sum.detectable += one.detectable;
  }
  return sum;
}

}  // namespace

void power(std::size_t count, const std::vector<Kind>& kinds, const std::vector<double>& steps) {
  fmt::print(
      "## What is found\n\n{} series for each line, with a step in night 151 to 301 of 335, up or down. Any size "
      "counts, whatever the tolerance. Night and interval: of the steps found among 300 series.\n\n",
      count);
  fmt::print("{}{}",
             row("noise", {"step", "suspected that night", "of 300 series, in 7 / 14 / 30 nights", "of 10,000 series",
                           "night exact", "within 2", "interval covers"}),
             rule(7));
  for (const Kind kind : kinds) {
    for (const double step : steps) {
      const Power found = power_of(kind, step, count);
      const Found& few = found.few;
      fmt::print("{}", row(std::string(name_of(kind)),
                           {fmt::format("{:.0f} %", 100 * step), share_text(found.that_night, count), three(few, count),
                            three(found.many, count), share_text(few.exact, few.found), share_text(few.near, few.found),
                            share_text(few.covered, few.found)}));
      for (const Floor& floor : floors) {
        if (floor.kind != kind || std::abs(floor.step - step) > 1e-9) continue;
        const std::string where = fmt::format("a step of {:.0f} % in {}", 100 * step, name_of(kind));
        bound(share_of(few.within[1], count) >= floor.in_14, where + " is found in 14 nights too seldom");
        bound(share_of(few.within[2], count) >= floor.in_30, where + " is found in 30 nights too seldom");
        bound(share_of(few.covered, few.found) >= 0.91, where + ": the interval covers too seldom");
        if (step >= 0.05) bound(share_of(few.near, few.found) >= 0.85, where + ": the night is too often wrong");
      }
    }
  }
  fmt::print("\n");
}

void detectable(std::size_t count, const std::vector<Kind>& kinds) {
  fmt::print(
      "## The step called detectable\n\nThe smallest step said to be found among 300 series in 14 nights in 80 % of "
      "cases, and the step that is.\n\n");
  fmt::print("{}{}", row("noise", {"said", "simulated"}), rule(2));
  for (const Kind kind : kinds) {
    double low = 0.002, high = 0.2;
    while (high - low > 0.001) {
      const double middle = 0.5 * (low + high);
      (share_of(power_of(kind, middle, count).few.within[1], count) >= 0.8 ? high : low) = middle;
    }
    const double said = power_of(kind, 0.02, count).detectable / static_cast<double>(count);
    fmt::print("{}", row(std::string(name_of(kind)),
                         {fmt::format("{:.2f} %", 100 * said), fmt::format("{:.2f} %", 100 * high)}));
    // In correlated noise the rule for large steps finds more than is said.
    bound(said / high > 0.75 && said / high < 1.6, fmt::format("detectable is off, {}", name_of(kind)));
  }
  fmt::print("\n");
}

// A series that goes away by the size of the step and comes back, and then the step.
void after_excursions(std::size_t count, const std::vector<Kind>& kinds) {
  constexpr std::size_t away = 120, lengths[] = {0, 10, 20, 30}, later[] = {10, 30};
  constexpr double sizes[] = {0.05, 0.2};
  fmt::print(
      "## After an excursion\n\nFrom night {} on, a series is away for some nights, by the size of the step that comes "
      "after its return; {} series for each line. Found among 300 series in 7 / 14 / 30 nights; without a step, false "
      "alarms per series and year in the 120 nights after the return.\n\n",
      away + 1, count);
  std::vector<std::string> heads = {"nights after the return"};
  for (const std::size_t length : lengths)
    heads.push_back(length == 0 ? "no excursion" : fmt::format("{} nights away", length));
  fmt::print("{}{}", row("noise, step", heads), rule(heads.size()));
  const Options options{.tolerance = 0};
  for (const Kind kind : kinds)
    for (const double size : sizes) {
      std::vector<std::string> quiet = {"no step"};
      for (const std::size_t length : lengths) {
        std::atomic<std::size_t> alarms = 0;
        parallel(count, [&](std::size_t i) {
          const Night back = first_night + static_cast<Night>(away + length);
          const Walked made = walked(excursion(kind, i, size, away, length, 120, {}).track, options);
          for (const Trial* alarm : alarms_of(made, options, 300))
            alarms += made.changes[alarm->change].change.first_after > back + 2;
        });
        const double yearly = share_of(alarms * year, count * 120);
        quiet.push_back(rate(yearly));
        bound(alarms <= binomial_limit(count * 120, 0.012 / year),
              fmt::format("{} false alarms per series and year after an excursion, {}", yearly, name_of(kind)));
      }
      fmt::print("{}", row(fmt::format("{}, {:.0f} %", name_of(kind), 100 * size), quiet));
      for (const std::size_t after : later) {
        std::vector<std::string> cells = {fmt::format("{}", after)};
        for (const std::size_t length : lengths) {
          std::vector<Found> found(count);
          parallel(count, [&](std::size_t i) {
            const Excursion made = excursion(kind, i, size, away, length, 120, after);
            add_alarm(walked(made.track, options), away + length + after, made.shift, 300, options, found[i]);
          });
          Found sum;
          for (const Found& one : found) add(sum, one);
          cells.push_back(three(sum, count));
        }
        fmt::print("{}", row("", cells));
      }
    }
  fmt::print("\n");
}

}  // namespace assay::history
