// Simulates the detector of changes in nightly series, and prints how often it is wrong and what it finds, as the
// Markdown of docs/history-detector.md: all tables, or those named. With --short, only enough of it for a test. Exit
// code 1 if a bound is broken.
#include "harness/history/detect/groups.h"
#include "tools/history/other_detectors.h"
#include "tools/history/simulation.h"
#include "tools/history/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <thread>

namespace assay::history {
namespace {

constexpr std::string_view introduction = R"(# How well the detector of changes does

Simulated, by `cmake --build build/release --target history_simulate && build/release/history_simulate`,
which takes an hour and prints more tables than this page has; with `large`, `series` or `groups`, for example, it prints
only those. Every run gives the same. No recorded data took part. Where nothing else is said, noise has a standard
deviation of about 1 % from night to night:

| noise | |
|---|---|
| iid | independent, normal |
| AR .5 | normal; neighbouring nights correlate by .5 |
| t3 | independent, Student's t with 3 degrees of freedom |
| outl | correlation .2; 7 % of nights are outliers of 3 to 10 % |
| mixed | every series another mixture of heavy and skewed tails, correlation up to .6, slow wandering, outliers to 15 % and a second level of one to three nights, and figures rounded to a few digits: a stand-in for real machines, whose shares are chosen, not measured |
| modes | correlation .2; about every 50 nights, 1 to 14 nights at a level 3 to 5 % away |
| common | normal; series of one night correlate by .3 |
| AR .3 | normal; neighbouring nights correlate by .3 |
| drift | normal, on a line that rises or falls by up to 10 standard deviations a year |
| weekday | normal; two nights of seven are 1 to 4 standard deviations away |

A stay of many nights at another level is a step until it ends: `modes` alarms while the series learns the level. Once
it has come back from there twice, going there and back is no event any more.

)";

std::vector<double> common_of(std::size_t count, std::uint64_t seed) { return noise_of(Kind::iid, count, ~seed); }

// False alarms per series and year, without any change, of series that are looked at each by itself.
void false_alarms(std::size_t count, bool others) {
  const Kind kinds[] = {Kind::iid, Kind::ar, Kind::t3, Kind::outl, Kind::mixed, Kind::modes};
  const Options options{.tolerance = 0};
  std::vector<std::vector<std::string>> cells(5);
  std::vector<std::string> names;
  for (const Kind kind : kinds) {
    names.emplace_back(name_of(kind));
    std::atomic<std::size_t> few = 0, many = 0, divisive = 0, t = 0, two = 0;
    const std::size_t slow = others ? std::min<std::size_t>(count, 200) : 0;
    parallel(count, [&](std::size_t i) {
      const Track track = track_of(noise_of(kind, nights, i));
      const Walked made = walked(track, options);
      few += alarms_of(made, options, 300).size();
      many += alarms_of(made, options, 10000).size();
      if (i < slow) {
        divisive += e_divisive(track.values).size();
        t += t_of_64(track.values).size();
        two += two_sigma(track.values).size();
      }
    });
    const auto yearly = [](std::size_t found, std::size_t series) { return share_of(found * year, series * nights); };
    cells[0].push_back(rate(yearly(divisive, slow)));
    cells[1].push_back(rate(yearly(t, slow)));
    cells[2].push_back(rate(yearly(two, slow)));
    cells[3].push_back(rate(yearly(few, count)));
    cells[4].push_back(rate(yearly(many, count)));
    if (kind != Kind::modes) {
      bound(yearly(few, count) <= 0.012,
            fmt::format("{} false alarms per series and year, {}", yearly(few, count), name_of(kind)));
      bound(yearly(many, count) <= 0.004,
            fmt::format("{} false alarms of 10,000, {}", yearly(many, count), name_of(kind)));
    }
  }
  fmt::print("## False alarms per series and year\n\n{} series of {} nights each, no change.\n\n", count, nights);
  fmt::print("{}{}", row("detector", names), rule(names.size()));
  if (others) {
    fmt::print("{}", row("E-divisive + t, p .001, of 100 nights", cells[0]));
    fmt::print("{}", row("t .99 of 64", cells[1]));
    fmt::print("{}", row("2 sigma of 30", cells[2]));
  }
  fmt::print("{}", row("Assay, 300 series", cells[3]));
  fmt::print("{}\n", row("Assay, 10,000 series", cells[4]));
}

struct Panel {
  std::size_t series = 0;
  std::size_t years = 0;
  std::vector<Kind> kinds;
};

// The share of nights on which anything alarms, with everything in place: all series at once, and groups of 100.
void nights_with_alarms(const std::vector<Panel>& panels) {
  fmt::print(
      "## Nights with a false alarm\n\nAll series of a night together, and a group of each 100 of them; at most 1 % of "
      "nights may alarm. Tolerance 2 %.\n\n");
  fmt::print("{}{}", row("noise", {"series", "nights", "nights that alarm", "alarms"}), rule(4));
  for (const Panel& panel : panels) {
    for (const Kind kind : panel.kinds) {
      std::size_t alarming = 0, alarms = 0, all = 0;
      double seconds = 0;
      for (std::size_t k = 0; k < panel.years; ++k) {
        const std::vector<double> common = common_of(year, k + 77);
        std::vector<Track> tracks(panel.series);
        parallel(panel.series,
                 [&](std::size_t i) { tracks[i] = track_of(noise_of(kind, year, 1000000 * (k + 1) + i, common)); });
        std::vector<Group> groups(panel.series / 100);
        for (std::size_t i = 0; i < panel.series; ++i) groups[i % groups.size()].members.push_back(i);
        const auto before = std::chrono::steady_clock::now();
        const Analysis analysis = analyse(tracks, groups, {});
        seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
        for (const NightSummary& night : analysis.nights) {
          alarming += night.opened > 0;
          alarms += night.opened;
          ++all;
        }
      }
      const double share = share_of(alarming, all);
      fmt::print("{}",
                 row(std::string(name_of(kind)), {fmt::format("{}", panel.series), fmt::format("{}", all),
                                                  fmt::format("{:.2f} %", 100 * share), fmt::format("{}", alarms)}));
      fmt::print(stderr, "{} series, {}: {:.2f} s a year\n", panel.series, name_of(kind),
                 seconds / static_cast<double>(panel.years));
      if (kind != Kind::modes)
        bound(share <= 0.01,
              fmt::format("{:.2f} % of nights alarm, {} series, {}", 100 * share, panel.series, name_of(kind)));
    }
  }
  fmt::print("\n");
}

// A step in every one of 20 series, seen in their group.
void groups(std::size_t count, double step) {
  fmt::print(
      "## A step of {:.0f} % in all 20 series of a group\n\nFound by the group's own series, among 300; {} groups.\n\n",
      100 * step, count);
  fmt::print("{}{}", row("correlation between series", {"in 7 / 14 / 30 nights"}), rule(1));
  for (const bool correlated : {false, true}) {
    std::atomic<std::size_t> found[3] = {};
    parallel(count, [&](std::size_t i) {
      constexpr std::size_t at = 250, members = 20;  // night, series
      const std::vector<double> common = common_of(nights, i);
      std::vector<Track> tracks;
      Group group;
      for (std::size_t k = 0; k < members; ++k) {
        tracks.push_back(
            track_of(noise_of(correlated ? Kind::common : Kind::iid, nights, 900000 + members * i + k, common)));
        for (std::size_t n = at; n < nights; ++n) tracks.back().values[n] += std::log1p(step);
        group.members.push_back(k);
      }
      Walked made;
      const Options options{.tolerance = 0};
      walk_group(tracks, group, options, first_night, first_night + nights - 1, made);
      for (const Trial* alarm : alarms_of(made, options, 300)) {
        const long age = alarm->night - first_night - static_cast<long>(at) + 1;
        if (age < 1) continue;
        found[0] += age <= 7;
        found[1] += age <= 14;
        found[2] += age <= 30;
        break;
      }
    });
    const auto share = [&](std::size_t n) {
      return fmt::format("{:.2f}", static_cast<double>(n) / static_cast<double>(count));
    };
    fmt::print("{}",
               row(correlated ? ".3" : "0", {share(found[0]) + " / " + share(found[1]) + " / " + share(found[2])}));
  }
  fmt::print("\n");
}

// Each by the name that asks for it alone.
struct Tables {
  const char* name;
  std::function<void()> print;
};

std::vector<Tables> tables() {
  const std::vector<Kind> alarming = {Kind::mixed, Kind::ar, Kind::common},
                          found = {Kind::iid, Kind::outl, Kind::mixed},
                          all = {Kind::iid, Kind::ar, Kind::t3, Kind::outl, Kind::mixed, Kind::modes};
  return {{"large", [] { large_steps(400, 1000); }},
          {"series", [] { false_alarms(3000, true); }},
          {"nights",
           [=] {
             nights_with_alarms({{300, 10, alarming}, {10000, 2, alarming}});
           }},
          {"power",
           [=] {
             power(500, found, {0.01, 0.02, 0.05, 0.1, 0.2, 0.5});
           }},
          {"excursions", [=] { after_excursions(500, found); }},
          {"detectable",
           [] {
             detectable(200, {Kind::iid, Kind::ar, Kind::outl, Kind::mixed});
           }},
          {"groups", [] { groups(200, 0.01); }},
          {"confirm", [=] { confirmations(300, 4, all); }},
          {"branch", [=] { branches(10000, 10, all); }}};
}

void short_tables() {
  false_alarms(300, false);
  nights_with_alarms({{300, 1, {Kind::mixed, Kind::ar, Kind::common}}});
  power(60, {Kind::iid, Kind::outl, Kind::mixed}, {0.05});
  after_excursions(40, {Kind::iid});
  groups(20, 0.01);
  large_steps(100, 100);
  confirmations(30, 1, {Kind::mixed});
  branches(300, 4, {Kind::ar, Kind::mixed});
}

int run(const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"--short"}) {
    short_tables();
    return broken_bounds() > 0 ? 1 : 0;
  }
  const std::vector<Tables> known = tables();
  for (const std::string& name : names)
    if (std::ranges::none_of(known, [&](const Tables& one) { return one.name == name; })) {
      fmt::print(stderr, "usage: history_simulate [--short | TABLE...], where TABLE is one of");
      for (const Tables& one : known) fmt::print(stderr, " {}", one.name);
      fmt::print(stderr, "\n");
      return 2;
    }
  if (names.empty()) fmt::print("{}", introduction);
  for (const Tables& one : known)
    if (names.empty() || std::ranges::find(names, one.name) != names.end()) one.print();
  return broken_bounds() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace assay::history

int main(int argc, char** argv) { return assay::history::run({argv + 1, argv + argc}); }
