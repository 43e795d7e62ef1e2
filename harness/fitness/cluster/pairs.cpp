#include "harness/fitness/cluster/pairs.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/groups.h"
#include "harness/record/flags.h"
#include "harness/runs/figures.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace assay::fitness {

namespace {

constexpr std::size_t max_lines = 8;            // of evidence for one check
constexpr std::string_view of_port = " port ";  // in the names of ports: "mlx5_0 port 1"

}  // namespace

void add_line(HostCheck& check, Fitness state, const std::string& line) {
  const std::size_t shown = check.evidence.size();
  check.note(state, shown < max_lines ? line : shown == max_lines ? "and more" : "");
}

namespace {

using Kind = SlowCause::Kind;

// Links between the hosts of a record: those of its rails, or of its matrix as the only one.
struct Links {
  std::vector<std::string> hosts;
  RailTimes times;
  bool higher = true;  // the figures are rates

  // A figure as a time, and a time as a figure.
  double inverse(double value) const { return higher ? 1 / value : value; }
  // With the digits that a time of RailTimes has.
  double figure(double time) const { return std::stod(fmt::format("{:.6g}", inverse(time))); }
};

std::optional<Links> links_of(const Record& record) {
  if (!record.matrix) return std::nullopt;
  const std::span<const Matrix> rails = record.rails.empty() ? std::span(&*record.matrix, 1) : std::span(record.rails);
  std::vector<std::string> hosts;
  std::map<std::string, std::size_t> place;
  for (const int rank : record.matrix->ranks) place.emplace(hosts.emplace_back(record.host_of(rank)), place.size());
  if (place.size() < hosts.size()) return std::nullopt;
  Links links{hosts, RailTimes(hosts.size(), rails.size()), record.matrix->better == Better::higher};
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    const std::size_t n = rails[rail].ranks.size();
    if (rails[rail].values.size() != n * n) return std::nullopt;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const auto from = place.find(record.host_of(rails[rail].ranks[i]));
        const auto to = place.find(record.host_of(rails[rail].ranks[j]));
        if (i != j && from != place.end() && to != place.end())
          links.times.at(from->second, to->second, rail) = static_cast<float>(links.inverse(rails[rail].at(i, j)));
      }
  }
  return links;
}

// The number of each host's leaf switch, for explain_slow_links(); one of its own where it is not known.
std::vector<std::size_t> leaf_numbers(const std::vector<std::string>& hosts, const Leaves* leaves) {
  std::vector<std::size_t> numbers;
  std::map<std::string, std::size_t> known;
  for (const std::string& host : hosts) {
    const auto leaf = leaves ? leaves->find(host) : Leaves::const_iterator();
    const bool has = leaves && leaf != leaves->end();
    numbers.push_back(has ? known.try_emplace(leaf->second, numbers.size()).first->second : numbers.size());
  }
  return numbers;
}

double slowness(const SlowCause& cause) { return std::max(cause.sending, cause.receiving); }

SlowSwitch slow_switch(const Record& record, const Links& links, const SlowCause& cause, const Leaves& leaves) {
  SlowSwitch one;
  one.leaf = leaves.at(links.hosts[cause.hosts.front()]);
  one.key = record.key;
  for (const std::size_t host : cause.hosts) one.hosts.push_back(links.hosts[host]);
  std::set<std::string> others;  // other leaves; "" for a host without one
  for (const std::string& host : links.hosts)
    if (const auto leaf = leaves.find(host); leaf == leaves.end() || leaf->second != one.leaf)
      others.insert(leaf == leaves.end() ? "" : leaf->second);
  // Either of only two switches may be the slow one.
  if (others.size() == 1 && !others.begin()->empty()) one.leaf += " or " + *others.begin(), one.hosts = links.hosts;
  if (!record.rails.empty()) one.rail = cause.rail;
  one.share = 1 / slowness(cause);
  one.slow = cause.slow, one.links = cause.links;
  return one;
}

// Shows the worst port of each host by its fastest link, in the slower direction.
void show_best(const Record& record, const Links& links, double limit, HostChecks& checks) {
  for (std::size_t host = 0; host < links.hosts.size(); ++host)
    for (std::size_t rail = 0; rail < links.times.rails(); ++rail)
      for (const bool sends : {true, false}) {
        float best = std::nanf("");
        for (std::size_t other = 0; other < links.hosts.size(); ++other)
          best = std::fmin(best, sends ? links.times.at(host, other, rail) : links.times.at(other, host, rail));
        const auto check = checks.find(links.hosts[host]);
        if (check == checks.end() || !(best > 0)) continue;
        HostCheck& to = check->second;
        const bool shown = to.figure && to.floor && to.unit == record.matrix->unit;
        if (shown && best / limit <= (to.at_most ? *to.figure / *to.floor : *to.floor / *to.figure)) continue;
        to.of = fmt::format("{} best {}{}", record.key, sends ? "in sending" : "in receiving",
                            record.rails.empty() ? "" : fmt::format(" on rail {}", rail));
        to.unit = record.matrix->unit;
        to.figure = links.figure(best);
        to.floor = links.figure(limit);
        to.at_most = !links.higher;
      }
}

}  // namespace

std::optional<SlowLinks> judge_links(const Record& record, const StageFloors& floors, WorldChecks& world) {
  const std::optional<Links> links = links_of(record);
  if (!links || links->hosts.size() < min_fleet) return std::nullopt;
  HostChecks& checks = world.checks;
  const double share = floors.pair_share;
  const std::vector<std::string>& hosts = links->hosts;
  // Messages of CPUs depend on more than ports and switches.
  const double least = record.device == "cpu" ? 1 / share : SlowLimits().least;
  const double latency = std::max(slow_latency, 1 / share);
  SlowLinks found = explain_slow_links(links->times, leaf_numbers(hosts, floors.leaves),
                                       links->higher ? SlowLimits{least, 1 / share} : SlowLimits{latency, latency});
  if (!(found.usual > 0)) return std::nullopt;
  show_best(record, *links, found.limit * found.usual, checks);
  const auto figure = [&](double slower) {
    return format_quantity(links->inverse(slower * found.usual), record.matrix->unit);
  };
  const std::string usual = fmt::format(
      ", the usual link {} ({})", figure(1),
      links->higher ? format_percent(1 / found.limit) + " at least" : fmt::format("{:.3g} times at most", found.limit));
  // Hosts of another kind are about as slow as each other.
  const auto alike = [&](const SlowCause& cause) {
    std::set<std::size_t> failing;
    for (const SlowCause& other : found.causes)
      if ((other.kind == Kind::host || other.kind == Kind::port) && 3 * slowness(other) > slowness(cause))
        failing.insert(other.hosts.front());
    return failing.size();
  };
  const auto suspect = [&](const std::string& host) {
    if (checks.contains(host)) world.slow.insert(host), world.slow_keys.insert(record.key);
  };
  const auto blame = [&](std::size_t one, Fitness state, const char* part, const std::string& device,
                         const std::string& line) {
    if (!checks.contains(hosts[one])) return;
    suspect(hosts[one]);
    checks[hosts[one]].blame(part, device);
    add_line(checks[hosts[one]], state, record.key + ": " + line);
  };
  const auto blame_pair = [&](std::size_t a, std::size_t b, const std::string& where, double there, double back) {
    const std::string& from = hosts[a];
    const std::string& to = hosts[b];
    const std::string line =
        fmt::format("{} - {} is slow{}: {} from {} and {} from {}{}", from, to,
                    record.rails.empty() ? "" : " on " + where, figure(there), from, figure(back), to, usual);
    for (const std::size_t one : {a, b})
      blame(one, Fitness::unsure, "pair", fmt::format("{} - {}", std::min(from, to), std::max(from, to)), line);
  };
  for (const SlowCause& cause : found.causes) {
    if (cause.kind == Kind::leaf) {
      for (const std::size_t host : cause.hosts) suspect(hosts[host]);
      add_worst(world.switches, slow_switch(record, *links, cause, *floors.leaves));
      continue;
    }
    if (cause.kind == Kind::pair) {
      const std::string rails = fmt::format("{} of {}", cause.slow, plural(cause.links, "rail"));
      blame_pair(cause.hosts[0], cause.hosts[1], rails, cause.sending, cause.receiving);
      continue;
    }
    const std::string rail = cause.rail ? fmt::format("rail {}", *cause.rail) : std::string();
    std::string line = fmt::format("{}{} of {} to others are slow: {} in sending and {} in receiving{}",
                                   rail.empty() ? "" : rail + ": ", cause.slow, plural(cause.links, "link"),
                                   figure(cause.sending), figure(cause.receiving), usual);
    const std::size_t failing = alike(cause);
    const bool two_kinds = failing > 1 && 3 * failing > hosts.size();
    if (two_kinds)
      line += fmt::format("; so are {} of {} hosts: floors would tell which are right", failing, hosts.size());
    blame(cause.hosts.front(), two_kinds ? Fitness::unsure : Fitness::fail, "port", rail, line);
  }
  for (const SlowLink& one : found.left)
    blame_pair(one.from, one.to, fmt::format("rail {}", one.rail), one.there, one.back);
  return found;
}

namespace {

// Absent if the matrices are not of one kind.
std::optional<double> keep_better(const Record& record, Matrix& matrix, const Record& other, const Matrix& again,
                                  const std::set<std::string>& suspects) {
  const std::size_t n = matrix.ranks.size(), m = again.ranks.size();
  if (matrix.unit != again.unit || matrix.values.size() != n * n || again.values.size() != m * m) return std::nullopt;
  const auto better = [&](double a, double b) {
    return !std::isfinite(a)                 ? b
           : !std::isfinite(b)               ? a
           : matrix.better == Better::higher ? std::max(a, b)
                                             : std::min(a, b);
  };
  std::map<std::pair<std::string, std::string>, double> values;
  // Counts only partners that nobody suspects: two suspects may be slow or fast together.
  std::map<std::string, std::vector<double>> sends, receives;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j) {
      const double value = again.values[i * m + j];
      const std::string from = other.host_of(again.ranks[i]), to = other.host_of(again.ranks[j]);
      if (from == to || !std::isfinite(value)) continue;
      values[{from, to}] = value;
      if (!suspects.contains(to)) sends[from].push_back(value);
      if (!suspects.contains(from)) receives[to].push_back(value);
    }
  std::optional<double> slowest;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double& value = matrix.values[i * n + j];
      const std::string from = record.host_of(matrix.ranks[i]), to = record.host_of(matrix.ranks[j]);
      if (from == to || !std::isfinite(value)) continue;
      if (const auto found = values.find({from, to}); found != values.end())
        value = better(value, found->second);
      else if (sends.contains(from) && suspects.contains(from))
        value = better(value, median(sends[from]));
      else if (receives.contains(to) && suspects.contains(to))
        value = better(value, median(receives[to]));
      slowest = !slowest || better(*slowest, value) == *slowest ? value : *slowest;
    }
  return slowest;
}

}  // namespace

void keep_better_pairs(RunData& first, const RunData& again, const std::set<std::string>& suspects) {
  for (Record& record : first.records) {
    const auto other = std::ranges::find_if(
        again.records, [&](const Record& one) { return one.key == record.key && one.status == Status::ok; });
    if (other == again.records.end() || record.status != Status::ok) continue;
    if (!record.groups.empty()) keep_better_groups(record, *other, suspects);
    if (!record.matrix || !other->matrix) continue;
    const auto slowest = keep_better(record, *record.matrix, *other, *other->matrix, suspects);
    for (std::size_t rail = 0; rail < std::min(record.rails.size(), other->rails.size()); ++rail)
      keep_better(record, record.rails[rail], *other, other->rails[rail], suspects);
    for (Metric& metric : record.metrics)
      if (metric.name.starts_with("slowest_pair_") && slowest) metric.value = slowest, metric.ci95.reset();
  }
}

std::vector<std::string> with_partners(const std::set<std::string>& suspects, const std::vector<std::string>& hosts,
                                       std::size_t least) {
  const std::size_t others = hosts.size() - std::min(hosts.size(), suspects.size());
  const std::size_t fill = least - std::min(least, suspects.size());
  const std::size_t partners = std::min(others, std::max({std::size_t{3}, suspects.size(), fill}));
  std::vector<std::string> chosen;
  std::size_t number = 0;
  for (const std::string& host : hosts) {
    if (suspects.contains(host)) {
      chosen.push_back(host);
      continue;
    }
    if (number * partners / others < (number + 1) * partners / others) chosen.push_back(host);
    ++number;
  }
  return chosen;
}

namespace {

using Pairs = std::map<std::string, std::set<std::string>>;  // by host, both ways

// As slow_hosts(), of links that may take so many seconds.
Pairs slower_than(double seconds, const Record& record, const Links& links, const Leaves* leaves,
                  std::vector<SlowSwitch>& switches) {
  const std::vector<std::string>& hosts = links.hosts;
  const SlowLinks found = explain_slow_links(links.times, leaf_numbers(hosts, leaves), {.seconds = seconds});
  Pairs slow, worst, named, left;
  const auto add = [&](Pairs& pairs, std::size_t a, std::size_t b) {
    pairs[hosts[a]].insert(hosts[b]);
    pairs[hosts[b]].insert(hosts[a]);
  };
  float longest = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    for (std::size_t j = 0; j < hosts.size(); ++j)
      for (std::size_t rail = 0; rail < links.times.rails(); ++rail) {
        const float time = links.times.at(i, j, rail);
        if (time > seconds) add(slow, i, j);
        if (!(time > longest)) continue;
        longest = time;
        worst.clear();
        add(worst, i, j);
      }
  if (slow.empty()) return worst;
  for (const SlowCause& cause : found.causes)
    if (cause.kind == Kind::leaf)
      add_worst(switches, slow_switch(record, links, cause, *leaves));
    else if (cause.kind == Kind::pair)
      add(left, cause.hosts[0], cause.hosts[1]);
    else
      named[hosts[cause.hosts.front()]] = slow[hosts[cause.hosts.front()]];
  for (const SlowLink& one : found.left) add(left, one.from, one.to);
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  while (!left.empty()) {
    const auto [host, others] = *std::ranges::max_element(left, fewer);
    std::set<std::string> blamed = {host};
    if (others.size() == 1 && left[*others.begin()].size() == 1) blamed.insert(*others.begin());
    for (const std::string& one : blamed) named[one] = slow[one];
    left.erase(host);
    for (const std::string& other : others)
      if (left[other].erase(host); left[other].empty()) left.erase(other);
  }
  return named;
}

}  // namespace

Pairs slow_hosts(const Record& record, const Floor& floor, double limit, const Leaves* leaves,
                 std::vector<SlowSwitch>& switches) {
  const std::optional<Links> links = links_of(record);
  if (!links || record.matrix->unit != floor.unit || links->higher != (floor.bound == Bound::at_least)) return {};
  return slower_than(links->inverse(limit), record, *links, leaves, switches);
}

std::map<std::string, double> port_rates(const AuditedFleet& audit) {
  std::map<std::string, double> rates;
  for (const AuditedHost& host : audit.hosts) {
    const Json& inventory = host.inventory;
    const auto rails = inventory.is_object() ? inventory.find("rails") : inventory.end();
    const auto gpus = static_cast<double>(host.gpus.size());
    if (gpus == 0 || !inventory.is_object() || rails == inventory.end() || !rails->is_array()) continue;
    std::map<double, double> ports;  // how many, by rate in Gbit/s
    for (const Json& kind : *rails) {
      const auto count = number_member(kind, "/count/exactly");
      const double rate = std::strtod(text_member(kind, "/rate").c_str(), nullptr);
      if (count && rate > 0) ports[rate] += *count;
    }
    const auto own = std::ranges::find_if(ports, [&](const auto& one) { return one.second == gpus; });
    if (own != ports.end())
      rates[host.host] = own->first * 1e9 / 8;
    else if (ports.size() == 1)
      rates[host.host] = ports.begin()->first * 1e9 / 8 * std::min(1.0, ports.begin()->second / gpus);
  }
  return rates;
}

void judge_port_rates(const Record& record, const StageFloors& floors, WorldChecks& world) {
  constexpr double least = 0.9;             // of the rate
  constexpr double least_bytes = 64 << 20;  // smaller messages do not reach it
  std::optional<Links> links = links_of(record);
  if (!links || !links->higher || record.device == "cpu" || !floors.port_rates) return;
  if (floors.user && std::ranges::any_of(floors.user->floors, [&](const Floor& one) {
        return one.unit == record.matrix->unit && key_matches(one.key, record.key);
      }))
    return;
  if (param_number(record, "bytes").value_or(0) < least_bytes) return;
  std::vector<std::string> unknown;
  std::vector<double> rates;
  for (const std::string& host : links->hosts) {
    const auto rate = floors.port_rates->find(host);
    rates.push_back(rate == floors.port_rates->end() ? std::nan("") : rate->second);
    if (std::isnan(rates.back())) unknown.push_back(host);
  }
  if (!unknown.empty())
    world.add_note(fmt::format("links were not held against the rate of their ports, which is not known on {}: {}",
                               plural(unknown.size(), "host"), one_line(joined(unknown), 200)));
  // Shares of the rate become times: 1 is what the slower of both ports can do.
  std::map<std::string, double> worst;  // share, by host
  for (std::size_t i = 0; i < rates.size(); ++i)
    for (std::size_t j = 0; j < rates.size(); ++j)
      for (std::size_t rail = 0; rail < links->times.rails(); ++rail) {
        float& time = links->times.at(i, j, rail);
        time *= static_cast<float>(rates[i] + rates[j] - std::max(rates[i], rates[j]));
        if (!(time > 0)) continue;
        for (const std::size_t host : {i, j}) {
          const auto [place, fresh] = worst.try_emplace(links->hosts[host], 1 / time);
          if (!fresh) place->second = std::min<double>(place->second, 1 / time);
        }
      }
  const bool slow = std::ranges::any_of(worst, [](const auto& one) { return one.second < least; });
  std::vector<SlowSwitch> switches;
  const Pairs named = slow ? slower_than(1 / least, record, *links, floors.leaves, switches) : Pairs();
  for (const SlowSwitch& one : switches) {
    add_worst(world.switches, one);
    world.slow.insert(one.hosts.begin(), one.hosts.end()), world.slow_keys.insert(record.key);
  }
  for (const auto& [host, others] : named) {
    const auto check = world.checks.find(host);
    if (check == world.checks.end()) continue;
    world.slow.insert(host), world.slow_keys.insert(record.key);
    check->second.blame("port");
    add_line(check->second, Fitness::fail,
             fmt::format("{}: down to {} of the rate of its port ({}), {} at least; {}", record.key,
                         format_percent(worst.at(host)), format_quantity(floors.port_rates->at(host), "B/s"),
                         format_percent(least), slow_with_text(record, others)));
  }
}

void judge_ports(const RunSet& runs, WorldChecks& world) {
  std::map<std::pair<std::string, std::string>, std::pair<const Record*, double>> worst;     // share by host and port
  std::map<std::string, std::map<std::pair<std::string, std::string>, std::uint64_t>> grew;  // counters by host
  bool unproven = false;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    for (const DeviceErrors& error : record.errors)
      if (error.device.find(of_port) != error.device.npos) grew[error.host][{error.device, error.name}] += error.count;
    if (record.status != Status::ok) continue;
    unproven = unproven || flag::has(record.flags, flag::unproven_rails);
    for (const PortTraffic& port : record.ports) {
      if (!port.too_little()) continue;
      const auto [place, fresh] = worst.try_emplace({port.host, port.device}, &record, *port.share);
      if (!fresh && *port.share < place->second.second) place->second = {&record, *port.share};
    }
  }
  for (const auto& [port, found] : worst) {
    const auto check = world.checks.find(port.first);
    if (check == world.checks.end()) continue;
    check->second.blame("port", port.second.substr(0, port.second.find(of_port)));
    add_line(check->second, Fitness::fail,
             fmt::format("{}: {} carried {} of what its rail sent ({} at least)", found.first->key, port.second,
                         format_percent(found.second), format_percent(PortTraffic::least_share)));
  }
  for (auto& [host, check] : world.checks) {
    std::vector<std::string> counters;
    for (const auto& [counter, count] : grew[host])
      counters.push_back(fmt::format("{} {} {}", counter.first, counter.second, count));
    if (!counters.empty() && check.state != Fitness::unknown)
      check.note(Fitness::pass, "errors that its ports counted meanwhile: " + one_line(joined(counters), 300));
  }
  if (unproven) world.add_note(std::string(flag::unproven_rails));
}

std::string slow_with_text(const Record& record, const std::set<std::string>& others) {
  std::set<std::string> hosts;
  for (const RankResult& rank : record.ranks) hosts.insert(rank.host);
  return fmt::format("slow with {} of {}: {}", others.size(), plural(hosts.size() - 1, "host"),
                     one_line(joined(others), 200));
}

std::vector<Record> widest_matrices(const RunSet& runs) {
  std::map<bool, const Record*> widest;  // by whether it has rails
  const auto bytes = [](const Record& record) { return param_number(record, "bytes").value_or(0); };
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.status != Status::ok || !record.matrix || record.matrix->better != Better::higher) continue;
    const Record*& one = widest.try_emplace(!record.rails.empty(), &record).first->second;
    if (bytes(record) > bytes(*one)) one = &record;
  }
  std::vector<Record> found;
  for (const auto& [rails, record] : widest) found.push_back(*record);
  return found;
}

}  // namespace assay::fitness
