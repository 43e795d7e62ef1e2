// Large steps in young series, false alarms in stores of every size, states that come and go, and suspects.
#include "tools/history/other_detectors.h"
#include "tools/history/simulation.h"
#include "tools/history/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace assay::history {

namespace {

constexpr std::size_t stores[] = {7, 30, 100, 300, 10000};  // series tested each night
constexpr std::size_t store_count = std::size(stores);
constexpr double scale = 0.04;
constexpr std::size_t young = 60;  // nights

using Counts = std::array<std::atomic<std::size_t>, store_count>;

std::vector<std::string> heads(const char* first) {
  std::vector<std::string> all = {first};
  for (const std::size_t size : stores) all.push_back(fmt::format("{} series", size));
  return all;
}

std::string percent_of_nights(std::size_t alarms, std::size_t series_nights, std::size_t size) {
  const double chance = static_cast<double>(alarms) / static_cast<double>(series_nights);
  return fmt::format("{:.2f} %", 100 * -std::expm1(static_cast<double>(size) * std::log1p(-chance)));
}

// A step after 20 to 33 nights, or after as many again since an earlier one in the same direction.
void young_steps(Kind kind, double step, bool earlier, std::size_t count) {
  Counts soon = {}, later = {};
  std::atomic<std::size_t> suspects = 0, divisive = 0;
  parallel(count, [&](std::size_t i) {
    Stream random(i, "young");
    const auto first = static_cast<std::size_t>(random.whole(20, 33)),
               second = static_cast<std::size_t>(random.whole(20, 33));
    const std::size_t at = earlier ? first + second : first;
    const double shift = std::log1p(step) * (random.chance(0.5) ? 1 : -1);
    Track track = track_of(noise_of(kind, at + 14, 1100000 + i), scale);
    for (std::size_t k = first; k < track.values.size(); ++k) track.values[k] += k < at || !earlier ? shift : 2 * shift;
    const Walked made = walked(track, {});
    for (std::size_t s = 0; s < store_count; ++s) {
      long age = 1000;
      for (const Trial* alarm : alarms_of(made, {}, stores[s])) {
        const long place = made.changes[alarm->change].change.first_after - first_night;
        if (std::abs(place - static_cast<long>(at)) <= 3)
          age = std::min(age, alarm->night - first_night - static_cast<long>(at));
      }
      soon[s] += age <= 3;
      later[s] += age <= 7;
    }
    for (const Report& report : e_divisive(track.values))
      if (report.seen >= at && report.seen <= at + 7 && report.at + 3 >= at && report.at <= at + 3) {
        ++divisive;
        break;
      }
    track.nights.resize(at + 1), track.values.resize(at + 1);
    SeriesState state = walked(track, {}).state;
    conclude(track, {}, {.night = track.nights.back(), .tested = 30}, state);
    suspects += std::ranges::any_of(state.changes, [](const Change& change) { return change.same_night; });
  });
  std::vector<std::string> cells = {earlier ? "yes" : "no", fmt::format("{:.2f}", share_of(suspects, count))};
  for (std::size_t s = 0; s < store_count; ++s)
    cells.push_back(fmt::format("{:.2f}, {:.2f}", share_of(soon[s], count), share_of(later[s], count)));
  cells.push_back(fmt::format("{:.2f}", share_of(divisive, count)));
  fmt::print("{}", row(std::string(name_of(kind)), cells));
  if (kind == Kind::iid)
    bound(share_of(soon[1], count) >= (count >= 400 ? 0.9 : 0.85), "a large step comes more than 3 nights late");
}

// The share of nights of a store on which anything alarms, without any change.
void quiet_stores(std::size_t count, std::size_t length, const std::vector<Kind>& kinds) {
  for (const Kind kind : kinds) {
    Counts alarms = {};
    std::atomic<std::size_t> divisive = 0;
    const std::size_t slow = std::min<std::size_t>(count, 100);
    parallel(count, [&](std::size_t i) {
      const Track track = track_of(noise_of(kind, length, 1300000 + i), scale);
      const Walked made = walked(track, {});
      for (std::size_t s = 0; s < store_count; ++s) alarms[s] += alarms_of(made, {}, stores[s]).size();
      if (i < slow) divisive += e_divisive(track.values).size();
    });
    const std::size_t judged = length - min_nights + 1;
    std::vector<std::string> cells = {fmt::format("{}", length)};
    for (std::size_t s = 0; s < store_count; ++s)
      cells.push_back(percent_of_nights(alarms[s], count * judged, stores[s]) + fmt::format(" ({})", alarms[s].load()));
    cells.push_back(percent_of_nights(divisive, slow * judged, 7));
    fmt::print("{}", row(std::string(name_of(kind)), cells));
    for (std::size_t s = 0; s < 3; ++s)
      bound(alarms[s] <= binomial_limit(count * judged, 0.01 / static_cast<double>(stores[s])),
            fmt::format("{} false alarms in stores of {}, {}", alarms[s].load(), stores[s], name_of(kind)));
  }
}

// Two states, and how long the second lasts. Learned: from the end of the second stay of four nights or more on.
void sticky(std::size_t count, const char* name, double enter, bool geometric, double mean) {
  Counts learning = {}, after = {};
  parallel(count, [&](std::size_t i) {
    Stream random(i, name);
    std::vector<double> values = noise_of(Kind::ar3, nights, 1500000 + i);
    const double away = random.uniform(3, 5) * (random.chance(0.5) ? 1 : -1);
    std::vector<std::pair<std::size_t, std::size_t>> stays;
    for (std::size_t k = 0; k < nights; ++k) {
      if (!random.chance(enter)) continue;
      const std::size_t first = k;
      auto left = static_cast<std::size_t>(geometric ? 1 + random.exponential() * mean : random.whole(1, 14));
      for (; left > 0 && k < nights; --left) values[k++] += away;
      if (k - first < 4) continue;
      if (!stays.empty() && first < stays.back().second + 4)
        stays.back().second = k;  // no night between tells them apart
      else
        stays.emplace_back(first, k);
    }
    const std::size_t known = stays.size() < 2 ? nights : stays[1].second + 3;
    const Walked made = walked(track_of(values), {});
    for (std::size_t s = 0; s < store_count; ++s)
      for (const Trial* alarm : alarms_of(made, {}, stores[s]))
        ++(alarm->night - first_night > static_cast<Night>(known) ? after : learning)[s];
  });
  const std::size_t judged = count * (nights - min_nights + 1);
  std::vector<std::string> cells;
  for (std::size_t s = 0; s < store_count; ++s)
    cells.push_back(percent_of_nights(learning[s], judged, stores[s]) + ", " +
                    percent_of_nights(after[s], judged, stores[s]));
  fmt::print("{}", row(name, cells));
  if (!geometric) bound(after[3] <= binomial_limit(judged, 0.01 / 300), "states that are known alarm");
}

void suspects(std::size_t count, const std::vector<Kind>& kinds) {
  std::vector<std::string> cells;
  std::vector<double> rates;
  for (const Kind kind : kinds) {
    std::atomic<std::size_t> found = 0;
    parallel(count, [&](std::size_t i) {
      Stream random(i, "suspects");
      for (const auto& [low, high] : {std::pair(15, 30), std::pair(31, 60), std::pair(61, 199)}) {
        const auto length = static_cast<std::size_t>(random.whole(low, high)) + 1;
        const Track track = track_of(noise_of(kind, length, 1700000 + i), scale);
        SeriesState state = walked(track, {}).state;
        conclude(track, {}, {.night = track.nights.back(), .tested = 30}, state);
        found += std::ranges::any_of(state.changes, [](const Change& change) { return change.same_night; });
      }
    });
    rates.push_back(100 * share_of(found, 3 * count));
    cells.push_back(fmt::format("{:.2f}", rates.back()));
  }
  fmt::print("{}\n", row("suspects", cells));
  std::ranges::sort(rates);
  bound(rates[rates.size() / 2] <= 1, "more than one suspect in 100 series-nights");
}

}  // namespace

void large_steps(std::size_t count, std::size_t quiet) {
  const std::vector<Kind> kinds = {Kind::iid,  Kind::ar3,   Kind::ar,    Kind::t3,
                                   Kind::outl, Kind::mixed, Kind::drift, Kind::weekday};
  fmt::print(
      "## A large step in a young series\n\n25 % after 20 to 33 nights of 4 % noise, also as many nights after an "
      "earlier one; {} series for each line. Suspected the same night; and alarmed at most 3, 7 nights late, by how "
      "many series the store has. E-divisive, as in Apache Otava: at most 7 nights late. Outliers, second levels and "
      "weekends are up to 40 %, 20 % and 16 % away here: among them such a step needs more nights, or a "
      "confirmation.\n\n",
      count);
  std::vector<std::string> columns = heads("after an earlier step");
  columns.insert(columns.begin() + 1, "suspect");
  columns.emplace_back("E-divisive");
  fmt::print("{}{}", row("noise", columns), rule(columns.size()));
  for (const Kind kind : {Kind::iid, Kind::ar3, Kind::ar, Kind::outl, Kind::modes, Kind::drift, Kind::weekday})
    for (const bool earlier : {false, true}) young_steps(kind, 0.25, earlier, count);
  fmt::print(
      "\n## False alarms of stores of every size\n\nThe share of nights on which any series alarms, without a change: "
      "4 % noise, nights 15 to {} of {} series and 15 to {} of {}; alarms in brackets, of which few say little.\n\n",
      young, 4 * quiet, nights, quiet);
  columns = heads("nights");
  columns.emplace_back("E-divisive, 7 series");
  fmt::print("{}{}", row("noise", columns), rule(columns.size()));
  quiet_stores(4 * quiet, young, kinds);
  quiet_stores(quiet, nights, kinds);
  fmt::print(
      "\n## States that come and go\n\n1 % noise, correlation .3, and a second level 3 to 5 % away; {} series for each "
      "line. The share of nights on which any series alarms, by how many series the store has: while it is learned; "
      "after the second return. In the first line no stay is longer than 14 nights; in the others some last far longer "
      "than any before, and until they end nothing tells them from a step.\n\n",
      count);
  columns = heads("");
  columns.erase(columns.begin());
  fmt::print("{}{}", row("nights at the second level", columns), rule(columns.size()));
  sticky(count, "1 to 14, about every 50", 0.02, false, 0);
  sticky(count, "7 in the mean, about every 20", 0.05, true, 7);
  sticky(count, "20 in the mean, about every 20", 0.05, true, 20);
  fmt::print(
      "\n## Suspects without a change\n\nIn 100 series-nights of 4 % noise, a third each of nights 15 to 30, 31 "
      "to 60, 61 to 199.\n\n");
  std::vector<std::string> names;
  for (const Kind kind : kinds) names.emplace_back(name_of(kind));
  fmt::print("{}{}", row("", names), rule(names.size()));
  suspects(count, kinds);
}

}  // namespace assay::history
