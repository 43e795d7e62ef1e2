#include "harness/fitness/floors/fleet.h"

#include "harness/core/text.h"
#include "harness/fitness/floors/judge.h"
#include "harness/runs/machine.h"
#include "harness/statistics/losses.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace assay::fitness {

// The parts of FloorFleets::State.
namespace fleets {

// Where a record belongs: its hosts (empty if none is named), and what the members of its fleet have in common.
struct Place {
  std::string hosts;
  std::string fleet;
};

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
  const std::map<std::string, std::vector<double>>& values() const { return values_; }

  // Set if many are compared: what a loss may be as a fraction of the median, and members of a slower group.
  std::optional<double> allowed;
  std::set<std::string> slower_group;

 private:
  std::map<std::string, std::vector<double>> values_;
  std::optional<double> middle_;
};

struct Fleet {
  Members hosts;
  Members ranks;
};

}  // namespace fleets

namespace {

using namespace fleets;

Place place_of(const Entry& entry, const RunMachine& machine) {
  const Record& record = *entry.record;
  auto hosts = record.identity().hosts;
  if (hosts.empty()) hosts = machine.hosts;
  std::string hardware = record.device == "cpu" ? machine.cpu : machine.gpu;
  if (hardware.empty() && !record.ranks.empty()) hardware = record.ranks.front().device;
  return {joined(hosts, ","), fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", record.key, record.device, hardware,
                                          record.world_ranks, record.world_nodes, record.seed, protocol_of(record))};
}

bool worse(const Judgement& a, const Judgement& b, const Floor& floor) {
  if (a.outcome != b.outcome) return a.outcome < b.outcome;
  return shortfall(*a.value, floor.bound, *a.limit) > shortfall(*b.value, floor.bound, *b.limit);
}

bool decided_by_noise(Members& members, const std::string& member, const Floor& floor, Judgement& judgement) {
  if (!members.allowed) return false;
  const bool at_least = floor.bound == Bound::at_least;
  const double limit = *judgement.median * (at_least ? 1 - *members.allowed : 1 / (1 - *members.allowed));
  decide(judgement, floor, limit);
  // The limit allows for the noise of a figure already.
  const double beyond = shortfall(*judgement.value, floor.bound, limit);
  if (beyond <= 0)
    judgement.outcome = Outcome::pass, judgement.reason = distance_text(*judgement.value, floor.bound, limit);
  if (beyond <= 0 && members.slower_group.contains(member)) {
    judgement.outcome = Outcome::inconclusive;
    judgement.reason =
        fmt::format("one of {} of {} that are slower than the others: a floor would tell which are right",
                    members.slower_group.size(), members.size());
  }
  return true;
}

// The median has no interval: the floor asks for a fraction of this very fleet's.
void decide_among(Members& members, const std::string& member, const Floor& floor, Judgement& judgement) {
  judgement.median = members.middle();
  judgement.members = members.size();
  if (!decided_by_noise(members, member, floor, judgement)) decide(judgement, floor, floor.limit * *judgement.median);
}

std::string rank_member(const RankResult& rank, const std::string& hosts) {
  return fmt::format("{}\n{}", rank.host.empty() ? hosts : rank.host, rank.rank);
}

void decide_one(const Floor& floor, Judgement& judgement, const Place& place, Fleet& fleet) {
  const auto min_members = static_cast<std::size_t>(floor.min_members);
  const Judgement bare = judgement;
  bool decided = !place.hosts.empty() && fleet.hosts.size() >= min_members;
  if (decided) decide_among(fleet.hosts, place.hosts, floor, judgement);
  const auto figures = fleet.ranks.size() >= min_members ? rank_figures(*bare.entry.record, *bare.value, floor.unit)
                                                         : std::vector<double>();
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Judgement one = bare;
    one.value = figures[i];
    // A rank's samples are not recorded: the record's relative interval stands in for its own.
    const double scale = figures[i] / *bare.value;
    one.range = scaled(bare.range, scale);
    one.pointer = fmt::format("/ranks/{}/median", i);
    const RankResult& rank = bare.entry.record->ranks[i];
    one.culprit = rank_text(rank, true);
    decide_among(fleet.ranks, rank_member(rank, place.hosts), floor, one);
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

// The loss of which this is the logarithm.
double loss_of(double logarithm) { return 1 - std::exp(-logarithm); }

}  // namespace

struct FloorFleets::State {
  const Floor& floor;
  std::vector<Judgement>& judgements;
  std::vector<Place> places = {};
  std::map<std::string, Fleet> fleets = {};
};

FloorFleets::~FloorFleets() = default;
FloorFleets::FloorFleets(FloorFleets&&) noexcept = default;

FloorFleets::FloorFleets(const Floor& floor, const RunSet& runs, std::vector<Judgement>& judgements)
    : state_(std::make_unique<State>(State{floor, judgements})) {
  std::vector<RunMachine> machines;
  for (const RunData& run : runs.runs()) machines.push_back(machine_of(run));
  for (const Judgement& judgement : judgements) {
    const Entry& entry = judgement.entry;
    state_->places.push_back(place_of(entry, machines[entry.run_index]));
    if (!judgement.value) continue;
    Fleet& fleet = state_->fleets[state_->places.back().fleet];
    const std::string& hosts = state_->places.back().hosts;
    if (!hosts.empty()) fleet.hosts.add(hosts, *judgement.value);
    const auto figures = rank_figures(*entry.record, *judgement.value, floor.unit);
    for (std::size_t i = 0; i < figures.size(); ++i)
      fleet.ranks.add(rank_member(entry.record->ranks[i], hosts), figures[i]);
  }
}

void FloorFleets::decide() {
  for (std::size_t i = 0; i < state_->judgements.size(); ++i)
    if (state_->judgements[i].value)
      decide_one(state_->floor, state_->judgements[i], state_->places[i], state_->fleets[state_->places[i].fleet]);
}

void set_limits(std::vector<FloorFleets>& floors, double false_fails, CheckResult& result) {
  std::map<std::string, std::size_t> place;  // of each member among all
  std::vector<Members*> fleets;
  std::vector<FleetCase> cases;
  for (FloorFleets& of_floor : floors)
    for (auto& [name, fleet] : of_floor.state_->fleets)
      for (Members* members : {&fleet.hosts, &fleet.ranks}) {
        const Floor& floor = of_floor.state_->floor;
        const bool at_least = floor.bound == Bound::at_least;
        const double margin = at_least ? floor.limit : 1 / floor.limit;
        if (members->size() < static_cast<std::size_t>(floor.min_members) || !(margin > 0)) continue;
        FleetCase one{.speeds = {}, .margin = std::max(0.0, -std::log(margin)), .together = members == &fleet.hosts};
        for (const auto& [member, values] : members->values()) {
          const std::size_t at = place.try_emplace(member, place.size()).first->second;
          one.speeds.resize(std::max(one.speeds.size(), at + 1), std::numeric_limits<double>::quiet_NaN());
          if (const double value = median(values); value > 0) one.speeds[at] = std::log(at_least ? value : 1 / value);
        }
        result.power.push_back({name.substr(0, name.find('\n')), floor.metric, members->size(), {}, {}});
        fleets.push_back(members);
        cases.push_back(std::move(one));
      }
  for (FleetCase& one : cases) one.speeds.resize(place.size(), std::numeric_limits<double>::quiet_NaN());
  const FleetLosses losses = fleet_losses(cases, false_fails);
  result.comparisons = losses.comparisons;
  const auto tell = [](const LossLimit& limit, FleetPower& power) {
    if (std::isfinite(limit.limit)) power.limit = loss_of(limit.limit), power.found = loss_of(limit.found);
  };
  for (std::size_t i = 0; i < fleets.size(); ++i) {
    tell(losses.cases[i], result.power[i]);
    fleets[i]->allowed = result.power[i].limit;
    for (const auto& [member, at] : place)
      if (std::ranges::find(losses.cases[i].slower_group, at) != losses.cases[i].slower_group.end())
        fleets[i]->slower_group.insert(member);
  }
  const LossLimit& all = losses.of_together;
  if (!std::isfinite(all.limit)) return;
  tell(all, result.power.emplace_back(FleetPower{"", "", all.members, {}, {}}));
  for (const auto& [member, at] : place) {
    if (!std::isfinite(losses.together[at])) continue;
    const bool slower = std::ranges::find(all.slower_group, at) != all.slower_group.end();
    const auto has = [at = at](const FleetCase& one) { return one.together && std::isfinite(one.speeds[at]); };
    result.together[member] = {loss_of(losses.together[at]), loss_of(all.limit),
                               static_cast<std::size_t>(std::ranges::count_if(cases, has)),
                               slower ? all.slower_group.size() : 0};
  }
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
