#include "harness/fitness/cluster/pairs.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/slow_links.h"
#include "harness/fitness/floors/judge.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace assay::fitness {

namespace {

constexpr std::size_t max_lines = 8;  // of evidence for one check

}  // namespace

void add_line(HostCheck& check, Fitness state, const std::string& line) {
  const std::size_t shown = check.evidence.size();
  check.note(state, shown < max_lines ? line : shown == max_lines ? "and more" : "");
}

std::set<std::string> judge_pairs(const Record& record, double share, HostChecks& checks) {
  const Matrix& matrix = *record.matrix;
  const std::size_t n = matrix.ranks.size();
  if (n < min_fleet || matrix.values.size() != n * n) return {};
  const bool higher = matrix.better == Better::higher;
  if (!higher) share = std::min(share, 1 / slow_latency);
  const std::string bound =
      higher ? format_percent(share) + " at least" : fmt::format("{:.3g} times at most", 1 / share);
  std::set<std::string> suspects;
  const auto speed = [&](std::size_t from, std::size_t to) {
    const double value = matrix.values[from * n + to];
    return higher ? value : 1 / value;
  };
  std::vector<double> all;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j && std::isfinite(speed(i, j))) all.push_back(speed(i, j));
  if (all.empty()) return {};
  const double limit = share * median(all);
  const auto figure = [&](double value) { return higher ? value : 1 / value; };
  std::set<std::size_t> slow;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string host = record.host_of(matrix.ranks[i]);
    if (!checks.contains(host)) continue;
    HostCheck& check = checks[host];
    for (const bool sends : {true, false}) {
      double best = 0;
      for (std::size_t j = 0; j < n; ++j)
        if (i != j && std::isfinite(sends ? speed(i, j) : speed(j, i)))
          best = std::max(best, sends ? speed(i, j) : speed(j, i));
      if (!(best > 0)) continue;
      const bool worse = !check.floor || check.unit != matrix.unit ||
                         best / limit < (check.at_most ? *check.floor / *check.figure : *check.figure / *check.floor);
      if (worse) {
        check.of = fmt::format("{} best {}", record.key, sends ? "in sending" : "in receiving");
        check.unit = matrix.unit;
        check.figure = figure(best);
        check.floor = figure(limit);
        check.at_most = !higher;
      }
      if (best >= limit) continue;
      slow.insert(i);
      suspects.insert(host);
      check.blame("port");
      add_line(check, Fitness::fail,
               fmt::format("{}: even its fastest link is slow in {}: {}, the median pair {} ({})", record.key,
                           sends ? "sending" : "receiving", format_quantity(figure(best), matrix.unit),
                           format_quantity(figure(limit / share), matrix.unit), bound));
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j || slow.contains(i) || slow.contains(j) || !(speed(i, j) < limit)) continue;
      const std::string from = record.host_of(matrix.ranks[i]), to = record.host_of(matrix.ranks[j]);
      for (const std::string& host : {from, to})
        if (checks.contains(host)) {
          suspects.insert(host);
          checks[host].blame("pair", fmt::format("{} - {}", std::min(from, to), std::max(from, to)));
          add_line(checks[host], Fitness::unsure,
                   fmt::format("{}: the link {} -> {} is slow: {}, the median pair {} ({})", record.key, from, to,
                               format_quantity(matrix.values[i * n + j], matrix.unit),
                               format_quantity(figure(limit / share), matrix.unit), bound));
        }
    }
  return suspects;
}

std::set<std::string> judge_rails(const Record& record, double share, HostChecks& checks) {
  const Matrix& whole = *record.matrix;
  std::vector<std::string> hosts;
  std::map<std::string, std::size_t> place;
  for (const int rank : whole.ranks) {
    const auto& name = hosts.emplace_back(record.host_of(rank));
    place.emplace(name, place.size());
  }
  if (hosts.size() < min_fleet || place.size() < hosts.size()) return {};
  const bool higher = whole.better == Better::higher;
  RailTimes times(hosts.size(), record.rails.size());
  for (std::size_t rail = 0; rail < record.rails.size(); ++rail) {
    const Matrix& matrix = record.rails[rail];
    for (std::size_t i = 0; i < matrix.ranks.size(); ++i)
      for (std::size_t j = 0; j < matrix.ranks.size(); ++j) {
        const auto from = place.find(record.host_of(matrix.ranks[i])), to = place.find(record.host_of(matrix.ranks[j]));
        if (i != j && from != place.end() && to != place.end())
          times.at(from->second, to->second, rail) = static_cast<float>(higher ? 1 / matrix.at(i, j) : matrix.at(i, j));
      }
  }
  const SlowLinks found =
      explain_slow_links(std::move(times), {},
                         higher ? SlowLimits{SlowLimits().least, 1 / share} : SlowLimits{slow_latency, slow_latency});
  const auto figure = [&](double slower) {
    const double seconds = slower * found.usual;
    return format_quantity(higher ? 1 / seconds : seconds, whole.unit);
  };
  std::set<std::string> suspects;
  const auto blame = [&](std::size_t one, Fitness state, const char* part, const std::string& device,
                         const std::string& line) {
    if (!checks.contains(hosts[one])) return;
    suspects.insert(hosts[one]);
    checks[hosts[one]].blame(part, device);
    add_line(checks[hosts[one]], state, fmt::format("{}: {}, the usual link {}", record.key, line, figure(1)));
  };
  const auto blame_pair = [&](std::size_t a, std::size_t b, const std::string& where, double there, double back) {
    const std::string& from = hosts[a];
    const std::string& to = hosts[b];
    const std::string line = fmt::format("{} - {} is slow on {}: {} from {} and {} from {}", from, to, where,
                                         figure(there), from, figure(back), to);
    for (const std::size_t one : {a, b})
      blame(one, Fitness::unsure, "pair", fmt::format("{} - {}", std::min(from, to), std::max(from, to)), line);
  };
  for (const SlowCause& cause : found.causes) {
    if (cause.kind == SlowCause::Kind::pair) {
      const std::string rails = fmt::format("{} of {}", cause.slow, plural(cause.links, "rail"));
      blame_pair(cause.hosts[0], cause.hosts[1], rails, cause.sending, cause.receiving);
      continue;
    }
    const std::string rail = cause.rail ? fmt::format("rail {}", *cause.rail) : std::string();
    blame(
        cause.hosts.front(), Fitness::fail, "port", rail,
        fmt::format("{}{} of {} to others are slow: {} in sending and {} in receiving", rail.empty() ? "" : rail + ": ",
                    cause.slow, plural(cause.links, "link"), figure(cause.sending), figure(cause.receiving)));
  }
  for (const SlowLink& one : found.left)
    blame_pair(one.from, one.to, fmt::format("rail {}", one.rail), one.there, one.back);
  return suspects;
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
  std::map<std::string, double> sends, receives;  // the best of each host
  const auto keep = [&](std::map<std::string, double>& best, const std::string& host, double value) {
    const auto [place, fresh] = best.try_emplace(host, value);
    if (!fresh) place->second = better(place->second, value);
  };
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j) {
      const double value = again.values[i * m + j];
      const std::string from = other.host_of(again.ranks[i]), to = other.host_of(again.ranks[j]);
      if (from == to || !std::isfinite(value)) continue;
      values[{from, to}] = value;
      keep(sends, from, value), keep(receives, to, value);
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
        value = better(value, sends[from]);
      else if (receives.contains(to) && suspects.contains(to))
        value = better(value, receives[to]);
      slowest = !slowest || better(*slowest, value) == *slowest ? value : *slowest;
    }
  return slowest;
}

}  // namespace

void keep_better_pairs(RunData& first, const RunData& again, const std::set<std::string>& suspects) {
  for (Record& record : first.records) {
    const auto other = std::ranges::find_if(again.records, [&](const Record& one) {
      return one.key == record.key && one.status == Status::ok && one.matrix && record.matrix;
    });
    if (other == again.records.end() || record.status != Status::ok) continue;
    const auto slowest = keep_better(record, *record.matrix, *other, *other->matrix, suspects);
    for (std::size_t rail = 0; rail < std::min(record.rails.size(), other->rails.size()); ++rail)
      keep_better(record, record.rails[rail], *other, other->rails[rail], suspects);
    for (Metric& metric : record.metrics)
      if (metric.name.starts_with("slowest_pair_") && slowest) metric.value = slowest, metric.ci95.reset();
  }
}

std::vector<std::string> with_partners(const std::set<std::string>& suspects, const std::vector<std::string>& hosts) {
  std::size_t partners = std::max<std::size_t>(2, suspects.size());
  std::vector<std::string> chosen;
  for (const std::string& host : hosts)
    if (suspects.contains(host) || (partners > 0 && partners-- > 0)) chosen.push_back(host);
  return chosen;
}

std::map<std::string, std::set<std::string>> slow_hosts(const Record& record, const Floor& floor, double limit) {
  using Pairs = std::map<std::string, std::set<std::string>>;
  if (!record.matrix || record.matrix->unit != floor.unit) return {};
  const Matrix& matrix = *record.matrix;
  const std::size_t n = matrix.ranks.size();
  if (matrix.values.size() != n * n) return {};
  Pairs slow, worst;  // by host, both ways
  double farthest = 0;
  const auto add = [](Pairs& pairs, const std::string& a, const std::string& b) {
    pairs[a].insert(b);
    pairs[b].insert(a);
  };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const std::string from = record.host_of(matrix.ranks[i]), to = record.host_of(matrix.ranks[j]);
      const double value = matrix.values[i * n + j];
      if (from == to || !std::isfinite(value)) continue;
      const double beyond = shortfall(value, floor.bound, limit);
      if (beyond > 0) add(slow, from, to);
      if (worst.empty() || beyond > farthest) {
        farthest = beyond;
        worst.clear();
        add(worst, from, to);
      }
    }
  if (slow.empty()) return worst;
  Pairs named, left = slow;
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

std::string slow_with_text(const Record& record, const std::set<std::string>& others) {
  std::set<std::string> hosts;
  for (const RankResult& rank : record.ranks) hosts.insert(rank.host);
  return fmt::format("slow with {} of {}: {}", others.size(), plural(hosts.size() - 1, "host"),
                     one_line(joined(others), 200));
}

}  // namespace assay::fitness
