// Old nights as weekly medians.
#include "harness/history/store/state.h"
#include "harness/history/store/tables.h"
#include "harness/history/store/writer.h"
#include "harness/record/content_hash.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace assay::store {

namespace {

constexpr Night days = 7;

// Weeks begin on Mondays; 1970-01-01 was a Thursday.
Night week_of(Night night) {
  const Night since_monday = night + 3;
  return (since_monday - (since_monday % days + days) % days) / days;
}

// Merges the runs of one week and branch: each series keeps one point, in the run whose figure is nearest to the
// median.
void merge_week(std::vector<RunRow>& runs) {
  struct Place {
    std::size_t run = 0;
    PackedPoint point;
  };
  std::map<std::int64_t, std::vector<Place>> series;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const PackedPoint& point : runs[i].points) series[point.series].push_back({i, point});
    runs[i].points.clear();
  }
  for (const auto& [id, places] : series) {
    std::vector<double> logs;
    for (const Place& place : places) logs.push_back(place.point.log);
    const double middle = median(logs);
    const Place& nearest = *std::ranges::min_element(places, [&](const Place& a, const Place& b) {
      return std::abs(a.point.log - middle) < std::abs(b.point.log - middle);
    });
    PackedPoint point = nearest.point;
    point.log = middle;
    if (places.size() > 1) point.within = std::numeric_limits<float>::quiet_NaN();
    point.disturbed = std::ranges::all_of(places, [](const Place& place) { return place.point.disturbed; });
    point.weekly = true;
    runs[nearest.run].points.push_back(point);
  }
}

// Independent of the ids of this store.
std::int64_t digest_of(const RunRow& row, const Tables& tables) {
  std::uint64_t sum = 0;
  for (const PackedPoint& point : row.points)
    sum += hash64(text_of(tables.series.at(point.series).identity), std::bit_cast<std::uint64_t>(point.log));
  return std::bit_cast<std::int64_t>(sum);
}

}  // namespace

std::size_t Store::compact(Night keep) {
  Database& database = state_->database;
  std::size_t gone = 0;
  {
    Transaction transaction(database, Transaction::Kind::write);
    Writer writer(database);
    const Tables tables = tables_of(database);
    Night week = 0;
    std::map<std::string, std::vector<RunRow>> branches;  // of this week
    const auto finish_week = [&] {
      for (auto& [branch, runs] : branches) {
        if (std::ranges::all_of(runs, [](const RunRow& run) { return run.compacted != 0; })) continue;
        for (const RunRow& run : runs) gone += run.points.size();
        merge_week(runs);
        for (RunRow& run : runs) {
          gone -= run.points.size();
          run.compacted = 1;
          run.digest = digest_of(run, tables);
          writer.put(run);
        }
      }
      branches.clear();
    };
    each_run(database, [&](RunRow row) {
      const Night own = week_of(history::night_of(row.started).value_or(0));
      if (own >= week_of(keep)) return;  // only whole weeks
      if (own != week) finish_week();
      week = own;
      branches[row.branch].push_back(std::move(row));
    });
    finish_week();
    transaction.commit();
  }
  Statement shrink(database, "PRAGMA incremental_vacuum");
  shrink.run();
  return gone;
}

}  // namespace assay::store
