#include "harness/fitness/cluster/rails.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/runs/figures.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay::fitness {

namespace {

using Kind = SlowCause::Kind;

using Port = std::pair<std::size_t, std::size_t>;  // rail, host

// What explains the slow links of each port that has some. A switch or a way to one host may be slow beside the port.
std::map<Port, Kind> slow_ports(const JudgedRails& links) {
  std::map<Port, Kind> found;
  for (const SlowLink& one : links.found.left)
    for (const std::size_t host : {one.from, one.to}) found[{one.rail, host}] = Kind::pair;
  for (const Kind kind : {Kind::pair, Kind::leaf, Kind::port, Kind::host})
    for (const SlowCause& cause : links.found.causes)
      for (std::size_t rail = 0; cause.kind == kind && rail < links.record->rails.size(); ++rail)
        for (const std::size_t host : cause.hosts)
          if (cause.rail.value_or(rail) == rail) found[{rail, host}] = kind;
  return found;
}

std::vector<RailPort> ports_of(const JudgedRails& links, const WorldChecks& world) {
  const Record& record = *links.record;
  const std::map<Port, Kind> slow = slow_ports(links);
  std::map<std::string, std::size_t> place;  // of hosts, in the order of the matrix
  for (const int rank : record.matrix->ranks) place.emplace(record.host_of(rank), place.size());
  std::vector<RailPort> ports;
  for (std::size_t rail = 0; rail < record.rails.size(); ++rail) {
    const Matrix& matrix = record.rails[rail];
    for (std::size_t own = 0; own < matrix.ranks.size(); ++own) {
      RailPort port{.host = record.host_of(matrix.ranks[own]), .rail = rail};
      if (!place.contains(port.host) || !world.checks.contains(port.host)) continue;
      for (const RankResult& rank : record.ranks)
        if (rank.rank == matrix.ranks[own]) port.gpu = rank.pci.empty() ? rank.uuid : rank.pci, port.nic = rank.nic;
      std::vector<double> sent, received;
      for (std::size_t other = 0; other < matrix.ranks.size(); ++other) {
        if (const double value = matrix.at(own, other); other != own && std::isfinite(value)) sent.push_back(value);
        if (const double value = matrix.at(other, own); other != own && std::isfinite(value)) received.push_back(value);
      }
      if (!sent.empty()) port.send = median(sent);
      if (!received.empty()) port.receive = median(received);
      port.partners = std::max(sent.size(), received.size());
      port.floor = 1 / (links.found.limit * links.found.usual);
      const auto kind = slow.find({rail, place.at(port.host)});
      port.state = kind == slow.end()           ? name_of(Fitness::pass, check_words)
                   : kind->second == Kind::leaf ? "switch"
                   : kind->second == Kind::pair ? name_of(Fitness::unsure, check_words)
                                                : name_of(world.checks.at(port.host).state, check_words);
      ports.push_back(std::move(port));
    }
  }
  std::ranges::stable_sort(ports, {}, [&](const RailPort& port) { return place.at(port.host); });
  return ports;
}

void judge_groups_of_rails(const Record& record, const JudgedRails& links, const StageFloors& floors,
                           WorldChecks& world) {
  const std::vector<double> times = rail_times(record);
  const std::map<Port, Kind> slow = links.record ? slow_ports(links) : std::map<Port, Kind>();
  const double most = 1 / floors.pair_share, limit = links.record ? links.found.limit : most;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const RankGroup& group = record.groups[i];
    RailGroup rail{.key = record.key, .rail = rail_of(record, group), .busbw = group.busbw, .share = 1 / times[i]};
    for (const int rank : group.ranks) rail.hosts.push_back(record.host_of(rank));
    rail.slow = times[i] > limit;
    if (rail.slow) {
      std::set<std::string> hosts, by;
      for (const auto& [port, kind] : slow) {
        const std::string host =
            port.first == rail.rail ? links.record->host_of(links.record->matrix->ranks[port.second]) : "";
        if (host.empty()) continue;
        by.insert(kind == Kind::leaf ? floors.leaves->at(host) : host);
        if (kind != Kind::leaf) hosts.insert(host);
      }
      rail.explained_by = {by.begin(), by.end()};
      world.slow_keys.insert(record.key);
      const std::string line =
          fmt::format("{}: rail {}, all hosts at once: {}, {} of the usual rail ({} at least)", record.key, rail.rail,
                      format_quantity(group.busbw, "B/s"), format_percent(rail.share), format_percent(1 / limit));
      for (const std::string& host : hosts)
        if (const auto check = world.checks.find(host); check != world.checks.end()) {
          world.slow.insert(host);
          add_line(check->second, Fitness::pass,
                   fmt::format("{}; its slow links are those of {}", line, one_line(joined(rail.explained_by), 200)));
        }
      if (rail.explained_by.empty()) {
        world.slow.insert(rail.hosts.begin(), rail.hosts.end());
        if (times[i] > most)
          add_worst(world.switches,
                    {.leaf = "", .rail = rail.rail, .hosts = rail.hosts, .key = record.key, .share = rail.share});
        else
          world.add_note(line + "; no link between two hosts explains it");
      }
    }
    world.rails.groups.push_back(std::move(rail));
  }
}

}  // namespace

void JudgedRails::take(const Record& one, std::optional<SlowLinks> explained) {
  if (!explained || one.rails.empty() || one.matrix->better != Better::higher) return;
  if (record && param_number(one, "bytes") <= param_number(*record, "bytes")) return;
  record = &one, found = std::move(*explained);
}

bool has_rail_groups(const Record& record) { return !record.groups.empty() && param_text(record, "among") == "rail"; }

std::size_t rail_of(const Record& record, const RankGroup& group) {
  const int first = group.ranks.empty() ? 0 : group.ranks.front();
  const std::string host = record.host_of(first);
  return static_cast<std::size_t>(std::ranges::count_if(
      record.ranks, [&](const RankResult& rank) { return rank.host == host && rank.rank < first; }));
}

std::vector<double> rail_times(const Record& record) {
  std::vector<double> times;
  for (const RankGroup& group : record.groups) times.push_back(group.busbw > 0 ? 1 / group.busbw : HUGE_VAL);
  std::vector<double> sorted = times;
  std::ranges::sort(sorted);
  for (double& time : times) time /= sorted[(sorted.size() - 1) / 4];
  return times;
}

void judge_rails(const RunSet& runs, const JudgedRails& links, const StageFloors& floors, WorldChecks& world) {
  if (links.record) world.rails.ports = ports_of(links, world);
  for (const Entry& entry : runs.entries())
    if (const Record& record = *entry.record; record.status == Status::ok && has_rail_groups(record))
      judge_groups_of_rails(record, links, floors, world);
}

}  // namespace assay::fitness
