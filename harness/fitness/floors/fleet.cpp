#include "harness/fitness/floors/fleet.h"

#include "harness/core/text.h"
#include "harness/fitness/floors/judge.h"
#include "harness/runs/machine.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace assay::fitness {

namespace {

// Where a record belongs: its hosts (empty if none is named), and what the members of its fleet have in common.
struct Place {
  std::string hosts;
  std::string fleet;
};

Place place_of(const Entry& entry, const RunMachine& machine) {
  const Record& record = *entry.record;
  auto hosts = record.identity().hosts;
  if (hosts.empty()) hosts = machine.hosts;
  std::string hardware = record.device == "cpu" ? machine.cpu : machine.gpu;
  if (hardware.empty() && !record.ranks.empty()) hardware = record.ranks.front().device;
  return {joined(hosts, ","), fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", record.key, record.device, hardware,
                                          record.world_ranks, record.world_nodes, record.seed, protocol_of(record))};
}

// Figures by member: a host, or a rank (GPU) of a host.
class Members {
 public:
  void add(const std::string& member, double value) { values_[member].push_back(value); }
  std::size_t size() const { return values_.size(); }
  // The median of the members' medians; cached, as every member asks for it.
  double middle() {
    if (!middle_) {
      std::vector<double> each;
      for (const auto& [member, values] : values_) each.push_back(median(values));
      middle_ = median(each);
    }
    return *middle_;
  }

 private:
  std::map<std::string, std::vector<double>> values_;
  std::optional<double> middle_;
};

struct Fleet {
  Members hosts;
  Members ranks;
};

// For each rank, the figure that the record would have if all ranks were like it (the record's own is the slowest's).
// For rates and times only; empty if ranks recorded no medians.
std::vector<double> rank_figures(const Judgement& judgement, const Floor& floor) {
  const auto& ranks = judgement.entry.record->ranks;
  const bool rate = floor.unit.ends_with("/s");
  if (ranks.size() < 2 || (!rate && floor.unit != "s")) return {};
  double slowest = 0;
  for (const RankResult& rank : ranks) {
    if (!rank.median || !(*rank.median > 0)) return {};
    slowest = std::max(slowest, *rank.median);
  }
  std::vector<double> figures;
  for (const RankResult& rank : ranks)
    figures.push_back(*judgement.value * (rate ? slowest / *rank.median : *rank.median / slowest));
  return figures;
}

bool worse(const Judgement& a, const Judgement& b, const Floor& floor) {
  if (a.outcome != b.outcome) return a.outcome < b.outcome;
  return shortfall(*a.value, floor.bound, *a.limit) > shortfall(*b.value, floor.bound, *b.limit);
}

// The median has no interval: the floor asks for a fraction of this very fleet's.
void decide_among(Members& members, const Floor& floor, Judgement& judgement) {
  judgement.median = members.middle();
  judgement.members = members.size();
  decide(judgement, floor, floor.limit * *judgement.median);
}

void decide_one(const Floor& floor, Judgement& judgement, const Place& place, Fleet& fleet) {
  const auto min_members = static_cast<std::size_t>(floor.min_members);
  const Judgement bare = judgement;
  bool decided = !place.hosts.empty() && fleet.hosts.size() >= min_members;
  if (decided) decide_among(fleet.hosts, floor, judgement);
  const auto figures = fleet.ranks.size() >= min_members ? rank_figures(bare, floor) : std::vector<double>();
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Judgement one = bare;
    one.value = figures[i];
    // A rank's samples are not recorded: the record's relative interval stands in for its own.
    const double scale = figures[i] / *bare.value;
    one.range = scaled(bare.range, scale);
    one.pointer = fmt::format("/ranks/{}/median", i);
    one.culprit = rank_text(bare.entry.record->ranks[i], true);
    decide_among(fleet.ranks, floor, one);
    if (!decided || worse(one, judgement, floor)) judgement = one;
    decided = true;
  }
  if (decided) return;
  judgement.members = std::max(fleet.hosts.size(), fleet.ranks.size());
  judgement.outcome = Outcome::inconclusive;
  judgement.reason = judgement.members == 0
                         ? "it names no host, so it has no place in a fleet"
                         : fmt::format("a fleet of {}: a median needs at least {}", judgement.members, min_members);
}

}  // namespace

void judge_fleet(const Floor& floor, const RunSet& runs, std::vector<Judgement>& judgements) {
  std::vector<RunMachine> machines;
  for (const RunData& run : runs.runs()) machines.push_back(machine_of(run));
  std::vector<Place> places;
  std::map<std::string, Fleet> fleets;
  for (const Judgement& judgement : judgements) {
    const Entry& entry = judgement.entry;
    places.push_back(place_of(entry, machines[entry.run_index]));
    if (!judgement.value) continue;
    Fleet& fleet = fleets[places.back().fleet];
    const std::string& hosts = places.back().hosts;
    if (!hosts.empty()) fleet.hosts.add(hosts, *judgement.value);
    const auto figures = rank_figures(judgement, floor);
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const RankResult& rank = entry.record->ranks[i];
      fleet.ranks.add(fmt::format("{}\n{}", rank.host.empty() ? hosts : rank.host, rank.rank), figures[i]);
    }
  }
  for (std::size_t i = 0; i < judgements.size(); ++i)
    if (judgements[i].value) decide_one(floor, judgements[i], places[i], fleets[places[i].fleet]);
}

std::vector<std::string> hosts_without(const RunSet& runs, const std::vector<Judgement>& judgements) {
  // Runs that share a host are of one machine (or one cluster).
  std::vector<std::size_t> group(runs.runs().size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  const auto root = [&](std::size_t i) {
    while (group[i] != i) i = group[i] = group[group[i]];
    return i;
  };
  std::map<std::string, std::size_t> first;  // run of each host
  for (std::size_t i = 0; i < runs.runs().size(); ++i) {
    const auto named = machine_of(runs.runs()[i]).hosts;
    std::set<std::string> hosts(named.begin(), named.end());
    for (const Entry& entry : runs.entries_of(i))
      for (const RankResult& rank : entry.record->ranks)
        if (!rank.host.empty()) hosts.insert(rank.host);
    for (const std::string& host : hosts) {
      const auto [place, fresh] = first.try_emplace(host, i);
      if (!fresh) group[root(i)] = root(place->second);
    }
  }
  std::set<std::size_t> named, measured;
  for (const auto& [host, run] : first) named.insert(root(run));
  for (const Judgement& judgement : judgements)
    if (judgement.outcome != Outcome::refused) measured.insert(root(judgement.entry.run_index));
  // A run that names no host may be of any.
  if (std::ranges::any_of(measured, [&](std::size_t run) { return !named.contains(run); })) return {};
  std::map<std::size_t, std::vector<std::string>> missing;
  for (const auto& [host, run] : first)
    if (!measured.contains(root(run))) missing[root(run)].push_back(one_line(host, 80));
  std::vector<std::string> all;
  for (const auto& [run, hosts] : missing) all.push_back(joined(hosts, " and "));
  std::ranges::sort(all);
  return all;
}

}  // namespace assay::fitness
