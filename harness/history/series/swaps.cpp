#include "harness/history/series/swaps.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace assay::history {

namespace {

constexpr double min_shared = 0.5;  // of the old machine's cases

// What a machine runs. What is measured otherwise there (conditions, protocol) is the same case.
using CaseName = std::tuple<std::string, std::string, std::string, int, int>;
CaseName case_name(const TrackedSeries& series) {
  const store::SeriesIdentity& id = series.identity;
  return {id.key, id.metric, id.device, id.ranks, id.nodes};
}

struct MachineNights {
  Night first = INT32_MAX, last = INT32_MIN;
  bool known = false;                          // has a series of min_nights
  std::map<CaseName, std::size_t> cases = {};  // the newest series of each
};

// The first night of any series after this one, which is not the last.
Night night_after(std::span<const TrackedSeries> series, Night night) {
  Night first = INT32_MAX;
  for (const TrackedSeries& one : series)
    if (const auto at = one.at_or_after(night + 1)) first = std::min(first, one.track.nights[*at]);
  return first;
}

}  // namespace

std::vector<MachineSwap> machine_swaps(std::span<const TrackedSeries> series) {
  std::map<std::string, MachineNights> machines;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto& nights = series[i].track.nights;
    MachineNights& machine = machines[series[i].identity.machine];
    machine.first = std::min(machine.first, nights.front());
    machine.last = std::max(machine.last, nights.back());
    machine.known = machine.known || nights.size() >= min_nights;
  }
  const auto last = last_night(series);
  const auto stopped = [&](const auto& machine) { return machine.second.known && machine.second.last < *last; };
  if (std::ranges::none_of(machines, stopped)) return {};
  for (std::size_t i = 0; i < series.size(); ++i) {
    const auto& nights = series[i].track.nights;
    MachineNights& machine = machines[series[i].identity.machine];
    std::size_t& newest = machine.cases.try_emplace(case_name(series[i]), i).first->second;
    if (nights.back() >= series[newest].track.nights.back()) newest = i;
  }
  std::map<std::pair<Night, std::string>, MachineSwap> swaps;
  for (const auto& one : machines) {
    if (!stopped(one)) continue;
    const auto& [name, old] = one;
    const Night until = std::max(old.last + week, night_after(series, old.last));
    // Only what it ran to the end counts: series that stopped earlier went for another reason.
    std::vector<std::size_t> ended;
    for (const auto& [key, index] : old.cases)
      if (series[index].track.nights.back() > old.last - week) ended.push_back(index);
    std::vector<std::pair<std::size_t, std::size_t>> best;
    for (const auto& [other, machine] : machines) {
      if (machine.first < old.last || machine.first > until || other == name) continue;
      std::vector<std::pair<std::size_t, std::size_t>> shared;
      for (const std::size_t index : ended)
        if (const auto at = machine.cases.find(case_name(series[index])); at != machine.cases.end())
          shared.emplace_back(index, at->second);
      if (shared.size() > best.size()) best = std::move(shared);
    }
    if (best.empty() || static_cast<double>(best.size()) < min_shared * static_cast<double>(ended.size())) continue;
    const std::string& to = series[best.front().second].identity.machine;
    MachineSwap& swap = swaps[{machines[to].first, to}];
    swap.machine = to;
    swap.from.push_back(name);
    swap.last_before = swap.from.size() == 1 ? old.last : std::max(swap.last_before, old.last);
    swap.first_after = machines[to].first;
    swap.series.insert(swap.series.end(), best.begin(), best.end());
  }
  std::vector<MachineSwap> all;
  for (auto& [key, swap] : swaps) all.push_back(std::move(swap));
  return all;
}

}  // namespace assay::history
