#include "reports/scaling/ranks.h"

#include "harness/runs/figures.h"
#include "reports/scaling/estimate.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace assay::report::scaling {

namespace {

bool has_median(const RankResult& rank) { return positive(rank.median, std::nullopt).has_value(); }

struct RankGroup {
  std::vector<Entry> entries;
  std::map<int, std::pair<double, int>> logarithms;  // by rank: sum and count
};

// Rank and time; the first on ties.
std::pair<int, double> slowest_of(const Record& record) {
  std::pair<int, double> slowest{0, 0};
  for (const RankResult& rank : record.ranks)
    if (has_median(rank) && *rank.median > slowest.second) slowest = {rank.rank, *rank.median};
  return slowest;
}

RankSpread spread_of(const RankGroup& group) {
  const Record& record = *group.entries.front().record;
  RankSpread spread;
  spread.title = case_title(record);
  spread.ranks = record.world_ranks;
  spread.records = group.entries.size();
  spread.first = group.entries.front();
  for (const auto& [rank, sum] : group.logarithms) {
    const double time = std::exp(sum.first / sum.second);
    if (spread.fastest == 0 || time < spread.fastest) spread.fastest = time;
    if (time > spread.slowest) {
      spread.slowest = time;
      spread.slowest_rank = rank;
    }
  }
  spread.spread = spread.slowest / spread.fastest - 1;
  for (const Entry& entry : group.entries)
    if (slowest_of(*entry.record).first == spread.slowest_rank) ++spread.times_slowest;
  for (const RankResult& rank : record.ranks)
    if (rank.rank == spread.slowest_rank) {
      spread.host = rank.host;
      spread.device = rank.device;
    }
  return spread;
}

}  // namespace

std::vector<RankSpread> rank_spreads(const RunSet& runs, const Likenesses& likenesses) {
  std::map<std::tuple<std::string, int, std::string, Likeness>, RankGroup> groups;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.world_ranks < 2 || record.status == Status::error || record.status == Status::skipped) continue;
    if (injected(record) || record.samples.unit != "s") continue;
    if (std::ranges::count_if(record.ranks, has_median) < 2) continue;
    std::string places;
    for (const RankResult& rank : record.ranks) places += std::to_string(rank.rank) + "=" + rank.host + "\n";
    RankGroup& group = groups[{configuration(record, {}), record.world_ranks, places, likenesses.of(entry)}];
    group.entries.push_back(entry);
    for (const RankResult& rank : record.ranks)
      if (has_median(rank)) {
        auto& [sum, count] = group.logarithms[rank.rank];
        sum += std::log(*rank.median);
        ++count;
      }
  }
  std::vector<RankSpread> spreads;
  for (const auto& [key, group] : groups) spreads.push_back(spread_of(group));
  std::ranges::stable_sort(spreads, std::ranges::greater(), &RankSpread::spread);
  return spreads;
}

}  // namespace assay::report::scaling
