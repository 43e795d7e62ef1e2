#include "harness/fitness/cluster/groups.h"

#include "harness/core/units.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/fitness/cluster/rails.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace assay::fitness {

namespace {

constexpr std::size_t min_groups = 3;     // that are slow, for a host to be named
constexpr std::size_t enough_hosts = 12;  // to measure again: fewer have no groups of 4

bool is_measured(const HostGroup& group) { return group.hosts.size() > 1 && std::isfinite(group.time); }

// Divides each group's time by the usual one of its size.
std::vector<HostGroup> relative_to_usual(std::vector<HostGroup> groups) {
  std::map<std::size_t, std::vector<double>> by_size;
  for (const HostGroup& group : groups)
    if (is_measured(group)) by_size[group.hosts.size()].push_back(group.time);
  for (HostGroup& group : groups)
    if (is_measured(group)) group.time /= quantile(by_size.at(group.hosts.size()), 0.25);
  return groups;
}

// In the order of their ranks.
std::vector<std::string> hosts_in(const Record& record) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (const RankResult& rank : record.ranks)
    if (seen.insert(rank.host).second) hosts.push_back(rank.host);
  return hosts;
}

// One for each group of the record; its hosts are places in hosts_in().
std::vector<HostGroup> groups_in(const Record& record) {
  std::map<std::string, std::size_t> place;
  for (const std::string& host : hosts_in(record)) place.emplace(host, place.size());
  std::vector<HostGroup> groups;
  for (const RankGroup& group : record.groups) {
    std::set<std::size_t> members;
    for (const int rank : group.ranks)
      if (const auto found = place.find(record.host_of(rank)); found != place.end()) members.insert(found->second);
    groups.push_back({{members.begin(), members.end()}, group.busbw > 0 ? 1 / group.busbw : HUGE_VAL});
  }
  return groups;
}

// The hosts of a group, or the number of its rail.
std::set<std::string> names_in(const Record& record, const RankGroup& group, bool rails) {
  if (rails) return {std::to_string(rail_of(record, group))};
  std::set<std::string> hosts;
  for (const int rank : group.ranks) hosts.insert(record.host_of(rank));
  return hosts;
}

// Slow groups widen the upper part of the distribution, but not the lower one. The fewer groups, the less is known of
// it.
double limit_of(const std::vector<HostGroup>& groups, SlowLimits limits) {
  constexpr double between = 0.6071;  // standard deviations from the 10th to the 25th percentile
  std::vector<double> times;
  for (const HostGroup& group : groups) times.push_back(group.time);
  const double sigma = std::log(quantile(times, 0.25) / quantile(times, 0.1)) / between;
  return std::clamp(std::exp((3 + 5 / std::sqrt(times.size())) * sigma), limits.least,
                    std::max(limits.least, limits.most));
}

// A host, and what its groups say.
struct Seen {
  SlowHost host;
  bool everywhere = false;                  // slow in enough of them to be named
  std::vector<const HostGroup*> slow = {};  // its slow groups
};

Seen seen(std::size_t host, const std::vector<HostGroup>& groups, double limit) {
  Seen one;
  std::vector<double> times;
  std::set<std::size_t> sizes, slow_sizes;
  for (const HostGroup& group : groups) {
    if (std::ranges::find(group.hosts, host) == group.hosts.end()) continue;
    times.push_back(group.time);
    sizes.insert(group.hosts.size());
    if (group.time > limit) one.slow.push_back(&group), slow_sizes.insert(group.hosts.size());
  }
  one.host = {host, one.slow.size(), times.size(), times.empty() ? 1 : median(times)};
  one.everywhere = one.slow.size() >= min_groups && 6 * one.slow.size() >= 5 * times.size() && slow_sizes == sizes;
  return one;
}

// How many of its slow groups have none of these hosts.
std::size_t unexplained(const Seen& one, const std::vector<std::size_t>& named) {
  return static_cast<std::size_t>(std::ranges::count_if(one.slow, [&](const HostGroup* group) {
    return std::ranges::find_first_of(group->hosts, named) == group->hosts.end();
  }));
}

}  // namespace

SlowGroups explain_slow_groups(std::vector<HostGroup> groups, std::size_t hosts, SlowLimits limits) {
  SlowGroups found;
  if (groups.empty()) return found;
  groups = relative_to_usual(std::move(groups));
  found.limit = limit_of(groups, limits);
  std::vector<Seen> all;
  for (std::size_t host = 0; host < hosts; ++host) all.push_back(seen(host, groups, found.limit));
  std::vector<std::size_t> named;
  while (true) {
    std::optional<std::size_t> best;
    std::pair<std::size_t, double> most = {min_groups - 1, 0};  // unexplained groups, times the usual
    for (const Seen& one : all)
      if (const std::pair explains(unexplained(one, named), one.host.times); one.everywhere && explains > most)
        if (explains.first >= min_groups) best = one.host.host, most = explains;
    if (!best) break;
    named.push_back(*best);
  }
  // The first ones may be partners of several slow hosts, which were found after them.
  for (const std::size_t host : std::vector(named)) {
    std::vector<std::size_t> others = named;
    std::erase(others, host);
    if (unexplained(all[host], others) < min_groups) named = std::move(others);
  }
  for (const std::size_t host : named) found.hosts.push_back(all[host].host);
  for (const Seen& one : all)
    // One that is slow everywhere may still be the partner of several slow hosts.
    if (const std::size_t left = unexplained(one, named);
        (one.everywhere && left > 0) || (left > 1 && 3 * left >= 2 * one.host.groups))
      if (std::ranges::find(named, one.host.host) == named.end())
        found.hosts.push_back(one.host), found.hosts.back().sure = false;
  return found;
}

void judge_groups(const Record& record, const StageFloors& floors, WorldChecks& world) {
  const std::vector<std::string> hosts = hosts_in(record);
  std::map<std::string, std::size_t> below, slow_below;  // how many, by leaf
  const auto leaf_of = [&](std::size_t host) {
    const auto leaf = floors.leaves ? floors.leaves->find(hosts[host]) : Leaves::const_iterator();
    return floors.leaves && leaf != floors.leaves->end() ? leaf->second : std::string();
  };
  for (std::size_t host = 0; host < hosts.size(); ++host) ++below[leaf_of(host)];
  std::vector<HostGroup> groups = groups_in(record);
  std::erase_if(groups, [](const HostGroup& group) { return !is_measured(group); });
  // The times of CPUs depend on more than ports and switches.
  const double most = 1 / floors.pair_share, least = record.device == "cpu" ? most : SlowLimits().least;
  const SlowGroups found = explain_slow_groups(std::move(groups), hosts.size(), {.least = least, .most = most});
  std::size_t sure = 0;
  for (const SlowHost& one : found.hosts)
    if (one.sure) ++sure, ++slow_below[leaf_of(one.host)];
  for (const SlowHost& one : found.hosts) {
    const auto check = world.checks.find(hosts[one.host]);
    if (check == world.checks.end()) continue;
    HostCheck& to = check->second;
    std::string line = fmt::format(
        "{}: slow in {} of {} groups of other hosts each: {} of the usual busbw of groups of their size ({} at least)",
        record.key, one.slow, one.groups, format_percent(1 / one.times), format_percent(1 / found.limit));
    const std::string leaf = leaf_of(one.host);
    const std::size_t beside = slow_below[leaf];
    const bool a_switch = !leaf.empty() && beside > 1 && 2 * beside > below[leaf];
    const bool doubtful = one.sure && (a_switch || (sure > 1 && 3 * sure > hosts.size()));
    if (doubtful)
      line += a_switch
                  ? fmt::format("; so are {} of {} hosts below {}: it may be the switch", beside, below[leaf], leaf)
                  : fmt::format("; so are {} of {} hosts: floors would tell which are right", sure, hosts.size());
    world.slow.insert(hosts[one.host]), world.slow_keys.insert(record.key);
    world.hosts_again = enough_hosts;
    to.blame("host");
    if (!to.figure)
      to.of = record.key + " busbw, of the usual", to.unit = "1", to.figure = 1 / one.times, to.floor = 1 / found.limit;
    add_line(to, one.sure && !doubtful ? Fitness::fail : Fitness::unsure, line);
  }
}

void keep_better_groups(Record& first, const Record& again, const std::set<std::string>& suspects) {
  const bool rails = has_rail_groups(first);
  if (rails != has_rail_groups(again) || again.groups.empty()) return;
  const auto times_of = [rails](const Record& record) {
    if (rails) return rail_times(record);
    std::vector<double> times;
    for (const HostGroup& group : relative_to_usual(groups_in(record))) times.push_back(group.time);
    return times;
  };
  const std::vector<double> before = times_of(first), after = times_of(again);
  std::map<std::string, std::vector<double>> seen;  // by suspect, or by the number of a rail
  for (std::size_t i = 0; i < after.size(); ++i)
    for (const std::string& one : names_in(again, again.groups[i], rails)) seen[one].push_back(after[i]);
  std::vector<double> all;
  for (std::size_t i = 0; i < before.size(); ++i) {
    double longest = 0;
    for (const std::string& one : names_in(first, first.groups[i], rails))
      if (const auto found = seen.find(one); found != seen.end() && (rails || suspects.contains(one)))
        longest = std::max(longest, median(found->second));
    if (longest > 0 && longest < before[i]) first.groups[i].busbw *= before[i] / longest;
    all.push_back(first.groups[i].busbw);
  }
  for (Metric& metric : first.metrics) {
    if (metric.name == "slowest_group_busbw") metric.value = std::ranges::min(all);
    if (metric.name == "median_group_busbw") metric.value = median(all);
  }
}

}  // namespace assay::fitness
