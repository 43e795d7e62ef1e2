#include "harness/history/series/order.h"

#include "harness/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::history {

namespace {

constexpr std::size_t shortest_hash = 7;  // that stands for a whole one

// The places of commits by their hashes, or by how these begin.
class FirstParents {
 public:
  explicit FirstParents(std::span<const std::string> hashes) {
    for (std::size_t i = 0; i < hashes.size(); ++i) places_[hashes[i]] = i;
  }
  std::optional<std::size_t> place(const std::string& commit) const {
    if (commit.size() < shortest_hash) return std::nullopt;
    const auto at = places_.lower_bound(commit);
    return at != places_.end() && at->first.starts_with(commit) ? std::optional(at->second) : std::nullopt;
  }

 private:
  std::map<std::string, std::size_t> places_;
};

}  // namespace

store::Contents order_by_commit(store::Contents contents, std::span<const std::string> first_parents,
                                std::size_t* left_out) {
  const FirstParents parents(first_parents);
  std::map<std::size_t, store::CommitNight> measured;  // by place among the first parents
  std::unordered_map<std::int64_t, std::size_t> place_of;
  for (const store::Run& run : contents.runs)
    if (const auto place = parents.place(run.commit)) {
      place_of[run.number] = *place;
      store::CommitNight& one = measured[*place];
      one = {first_parents[*place], std::max(one.day, run.night)};
    }
  const std::size_t gone =
      std::erase_if(contents.runs, [&](const auto& run) { return !place_of.contains(run.number); });
  if (left_out) *left_out = gone;
  if (contents.runs.empty() && gone > 0)
    throw UsageError(
        fmt::format("--order commit: none of the {} runs is of a first parent of HEAD here: use it in the repository "
                    "that was measured",
                    gone));
  std::unordered_map<std::size_t, Night> night_at;  // nights count from 1
  for (const auto& [place, commit] : measured) {
    contents.commits.push_back(commit);
    night_at[place] = static_cast<Night>(contents.commits.size());
  }
  std::unordered_map<std::int64_t, std::pair<Night, std::size_t>> order;  // of each run: its night, its place of before
  for (std::size_t i = 0; i < contents.runs.size(); ++i) {
    store::Run& run = contents.runs[i];
    run.night = night_at.at(place_of.at(run.number));
    order[run.number] = {run.night, i};
  }
  std::ranges::stable_sort(contents.runs, {}, &store::Run::night);
  for (store::Series& series : contents.series) {
    std::erase_if(series.points, [&](const auto& point) { return !order.contains(point.run); });
    for (store::Point& point : series.points) point.night = order.at(point.run).first;
    std::ranges::stable_sort(series.points,
                             [&](const auto& a, const auto& b) { return order.at(a.run) < order.at(b.run); });
  }
  std::erase_if(contents.series, [](const auto& series) { return series.points.empty(); });
  return contents;
}

Night day_of(const store::Contents& contents, Night night) {
  const auto& commits = contents.commits;
  if (commits.empty()) return night;
  return commits[static_cast<std::size_t>(std::clamp<Night>(night, 1, static_cast<Night>(commits.size()))) - 1].day;
}

Night night_of_day(const store::Contents& contents, Night day) {
  if (contents.commits.empty()) return day;
  Night newest = 0;
  for (std::size_t i = 0; i < contents.commits.size(); ++i)
    if (contents.commits[i].day <= day) newest = static_cast<Night>(i) + 1;
  return newest;
}

std::optional<Night> night_of_commit(const store::Contents& contents, const std::string& commit) {
  if (commit.size() < shortest_hash) return std::nullopt;
  for (std::size_t i = 0; i < contents.commits.size(); ++i)
    if (contents.commits[i].commit.starts_with(commit)) return static_cast<Night>(i) + 1;
  return std::nullopt;
}

std::string night_text(const store::Contents& contents, Night night) {
  const std::string day = date_text(day_of(contents, night));
  const auto& commits = contents.commits;
  if (night < 1 || night > static_cast<Night>(commits.size())) return day;
  return fmt::format("{} ({})", commits[static_cast<std::size_t>(night) - 1].commit.substr(0, 12), day);
}

CrowdedNights crowded_nights(const store::Contents& contents) {
  CrowdedNights crowded;
  if (!contents.commits.empty()) return crowded;
  std::map<std::pair<Night, std::string>, std::set<std::string_view>> commits;  // of a machine's night
  for (const store::Run& run : contents.runs)
    if (!run.commit.empty()) commits[{run.night, run.machine}].insert(run.commit);
  for (const auto& [night, all] : commits) {
    crowded.nights += all.size() > 1 ? 1 : 0;
    crowded.max_commits = std::max(crowded.max_commits, all.size());
  }
  return crowded;
}

}  // namespace assay::history
