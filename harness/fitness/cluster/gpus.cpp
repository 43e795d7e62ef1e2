#include "harness/fitness/cluster/gpus.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/whole_number.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/fitness/floors/judge.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace assay::fitness {

namespace {

constexpr std::string_view each_word = "/gpus=each", together_word = "/gpus=together";
constexpr double near_median = 0.2;  // pairs within it of their median show what is usual, if so many of them are
constexpr double min_alike_share = 0.75;

std::string without_word(std::string key, std::string_view word) {
  if (const std::size_t at = key.find(word); at != key.npos) key.erase(at, word.size());
  return key;
}

const Metric* rate_of(const Record& record) {
  for (const Metric& metric : record.metrics)
    if (metric.value && metric.better == Better::higher && metric.unit.ends_with("/s")) return &metric;
  return nullptr;
}

std::string rank_name(const RankResult& rank) {
  return rank.pci.empty() ? fmt::format("rank {}", rank.rank) : fmt::format("GPU {} ({})", rank.rank, rank.pci);
}

// "; 89 degC, 1.41 GHz, 455 W"
std::string sensors_text(const Record& record, const RankResult& rank) {
  const auto found = record.labels.find(fmt::format("sensors_of_rank_{}", rank.rank));
  return found == record.labels.end() ? "" : "; " + one_line(found->second, 80);
}

// One case that ran both ways on one host.
struct BothWays {
  const Record *alone = nullptr, *together = nullptr;
};

bool is_to_blame(const HostCheck& check, const RankResult& rank) {
  return !rank.pci.empty() && std::ranges::find(check.culprits, FailedPart{"gpu", rank.pci}) != check.culprits.end();
}

void tell_both(const std::string& key, const BothWays& both, HostCheck& check) {
  const Metric *alone = rate_of(*both.alone), *together = rate_of(*both.together);
  if (!alone || !together) return;
  const auto one = rank_figures(*both.alone, *alone->value, alone->unit),
             all = rank_figures(*both.together, *together->value, together->unit);
  if (one.empty() || one.size() != all.size()) return;
  double sum_one = 0, sum_all = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    sum_one += one[i], sum_all += all[i];
    if (all[i] * one[worst] < all[worst] * one[i]) worst = i;
    const RankResult& rank = both.together->ranks[i];
    if (is_to_blame(check, rank))
      check.note(
          Fitness::pass,
          fmt::format("{}: {} {} alone, {} together{}", rank_name(rank), key, format_quantity(one[i], alone->unit),
                      format_quantity(all[i], together->unit), sensors_text(*both.together, rank)));
  }
  const RankResult& rank = both.together->ranks[worst];
  check.note(Fitness::pass,
             fmt::format("{} {}: all {} at once reach {} of what each reaches alone; least {}: {} of {}{}", key,
                         alone->name, all.size(), format_percent(sum_all / sum_one), rank_name(rank),
                         format_percent(all[worst] / one[worst]), format_quantity(one[worst], alone->unit),
                         sensors_text(*both.together, rank)));
}

using GpuPair = std::pair<int, int>;  // from, to

// The figures of pairs of GPUs that a host measured in one case.
struct GpuPairs {
  int gpus = 0;
  std::string unit;
  std::map<GpuPair, double> figures;

  std::size_t possible() const { return static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus - 1); }
};

void add_pairs(const Record& record, GpuPairs& pairs) {
  if (const auto count = record.attribute("gpus"))
    if (const auto number = whole_number<int>(*count); number && *number > 0 && *number <= 1024)
      pairs.gpus = static_cast<int>(*number);
  for (const Metric& metric : record.metrics) {
    constexpr std::string_view head = "bandwidth_", middle = "_to_";
    const std::size_t at = metric.name.find(middle);
    if (!metric.name.starts_with(head) || at == metric.name.npos || !metric.value) continue;
    const auto from = whole_number<int>(metric.name.substr(head.size(), at - head.size())),
               to = whole_number<int>(metric.name.substr(at + middle.size()));
    if (!from || !to || *from < 0 || *to < 0 || *from >= pairs.gpus || *to >= pairs.gpus) continue;
    pairs.unit = metric.unit;
    double& figure = pairs.figures[{static_cast<int>(*from), static_cast<int>(*to)}];
    figure = std::max(figure, *metric.value);
  }
}

// Returns what is usual for each pair of a host; pairs for which nobody can say are left out.
std::map<GpuPair, double> usual_figures(const GpuPairs& own, const std::map<std::string, GpuPairs>& all) {
  std::map<GpuPair, std::vector<double>> seen;
  std::vector<double> here;
  for (const auto& [host, pairs] : all)
    for (const auto& [pair, figure] : pairs.figures) seen[pair].push_back(figure);
  for (const auto& [pair, figure] : own.figures) here.push_back(figure);
  std::map<GpuPair, double> expected;
  if (all.size() >= min_fleet) {
    for (const auto& [pair, figures] : seen)
      if (2 * figures.size() > all.size()) expected[pair] = median(figures);
    return expected;
  }
  if (own.gpus < 3 || here.empty()) return expected;
  const double middle = median(here);
  const auto near =
      std::ranges::count_if(here, [&](double one) { return std::abs(one - middle) <= near_median * middle; });
  if (static_cast<double>(near) < min_alike_share * static_cast<double>(own.possible())) return expected;
  for (int from = 0; from < own.gpus; ++from)
    for (int to = 0; to < own.gpus; ++to)
      if (from != to) expected[{from, to}] = middle;
  return expected;
}

// The GPU all of whose pairs are slow, if its host has more than two; -1: none.
int common_gpu(const std::set<GpuPair>& slow, int gpus) {
  for (int gpu = 0; gpu < gpus && gpus > 2; ++gpu)
    if (std::ranges::count_if(slow, [gpu](const GpuPair& one) { return one.first == gpu || one.second == gpu; }) ==
        gpus - 1)
      return gpu;
  return -1;
}

}  // namespace

std::map<std::string, HeldUp> gpus_that_held_up(const RunData& run, const std::vector<std::string>& hosts) {
  std::map<std::string, HeldUp> found;
  std::map<std::string, int> gpus;
  for (const Record& record : run.records) {
    const std::string host = host_of(record, hosts);
    int& most = gpus[host];
    most = std::max(most, record.world_ranks);
    if (record.status != Status::error || record.device == "cpu" || record.world_ranks < 2) continue;
    if (!record.failure || record.failure->kind != FailureKind::timeout || !record.failure->rank) continue;
    found[host].ranks.insert(*record.failure->rank);
    found[host].keys.insert(record.key);
  }
  std::erase_if(found, [&](const auto& one) { return static_cast<int>(one.second.ranks.size()) >= gpus[one.first]; });
  return found;
}

const RankResult* slowest_rank(const Record& record, const std::string& host) {
  const RankResult* slowest = nullptr;
  for (const RankResult& rank : record.ranks)
    if ((rank.host == host || rank.host.empty()) && (!slowest || rank.median.value_or(0) > slowest->median.value_or(0)))
      slowest = &rank;
  return slowest;
}

std::vector<const RankResult*> slow_ranks(const Record& record, const Floor& floor, double limit,
                                          const std::string& host) {
  std::vector<double> figures;
  for (const Metric& metric : record.metrics)
    if (metric.name == floor.metric && metric.value) figures = rank_figures(record, *metric.value, floor.unit);
  std::vector<const RankResult*> slow;
  for (std::size_t i = 0; i < figures.size(); ++i)
    if (shortfall(figures[i], floor.bound, limit) > 0) slow.push_back(&record.ranks[i]);
  const RankResult* slowest = slowest_rank(record, host);
  if (slow.empty() && slowest) slow.push_back(slowest);
  return slow;
}

void tell_gpus(const RunSet& runs, const std::vector<std::string>& hosts, HostChecks& checks) {
  std::map<std::pair<std::string, std::string>, BothWays> cases;  // by host and key
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.status != Status::ok || record.ranks.size() < 2) continue;
    const std::string host = host_of(record, hosts);
    if (record.key.find(each_word) != record.key.npos)
      cases[{host, without_word(record.key, each_word)}].alone = &record;
    else
      cases[{host, without_word(record.key, together_word)}].together = &record;
  }
  for (const auto& [place, both] : cases)
    if (const auto check = checks.find(place.first); check != checks.end() && both.alone && both.together)
      tell_both(place.second, both, check->second);
}

std::string judge_gpu_pairs(const RunSet& runs, const std::vector<std::string>& hosts, double share,
                            HostChecks& checks) {
  std::map<std::string, std::map<std::string, GpuPairs>> cases;  // by key and host
  std::map<std::string, const Record*> places;                   // of each host: a record with a rank on each GPU
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    if (record.status != Status::ok) continue;
    const std::string host = host_of(record, hosts);
    const Record*& place = places[host];
    if (record.family == "transfer" && record.ranks.size() == 1) add_pairs(record, cases[record.key][host]);
    if (!place || record.ranks.size() > place->ranks.size()) place = &record;
  }
  std::set<std::string> unjudged;  // hosts
  for (auto& [key, all] : cases) {
    std::erase_if(all, [](const auto& one) { return one.second.figures.empty(); });
    for (const auto& [host, pairs] : all) {
      const auto found = checks.find(host);
      if (found == checks.end()) continue;
      HostCheck& check = found->second;
      std::set<GpuPair> slow;  // the smaller number first
      const auto usual = usual_figures(pairs, all);
      if (!std::ranges::all_of(pairs.figures, [&](const auto& one) { return usual.contains(one.first); }))
        unjudged.insert(host);
      for (const auto& [pair, expected] : usual) {
        const auto own = pairs.figures.find(pair);
        if (own != pairs.figures.end() && own->second >= share * expected) continue;
        slow.insert(std::minmax(pair.first, pair.second));
        const std::string reached = own == pairs.figures.end() ? "no access" : format_quantity(own->second, pairs.unit);
        add_line(check, Fitness::fail,
                 fmt::format("{}: GPU {} to GPU {}: {}; usual here are {}", key, pair.first, pair.second, reached,
                             format_quantity(expected, pairs.unit)));
        check.repeat.insert(key);
      }
      const auto gpus = places.at(host)->ranks;
      for (int gpu = common_gpu(slow, pairs.gpus); gpu >= 0; gpu = common_gpu(slow, pairs.gpus)) {
        const auto at = static_cast<std::size_t>(gpu);
        const bool known = at < gpus.size() && gpus.size() == static_cast<std::size_t>(pairs.gpus);
        known ? check.blame("gpu", gpus[at].pci) : check.blame("nvlink", fmt::format("of GPU {}", gpu));
        std::erase_if(slow, [gpu](const GpuPair& one) { return one.first == gpu || one.second == gpu; });
      }
      for (const auto& [a, b] : slow) check.blame("nvlink", fmt::format("{}-{}", a, b));
    }
  }
  if (unjudged.empty()) return {};
  return fmt::format(
      "copies between GPUs that differ by design, or are few, and that no three hosts have were not judged: {}",
      one_line(fmt::format("{}", fmt::join(unjudged, ", ")), 200));
}

}  // namespace assay::fitness
