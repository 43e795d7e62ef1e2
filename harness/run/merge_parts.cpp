// The parts of a case's ranks become one record.
#include "harness/core/error.h"
#include "harness/record/flags.h"
#include "harness/run/case_settings.h"
#include "harness/run/execute.h"
#include "harness/sampling/straggler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace assay {

namespace {

// Names the slowest GPU (on a CPU: rank) of a case that uses one GPU per rank, and by how much it is slower.
void name_slowest_gpu(Record& whole) {
  const RankResult *slowest = nullptr, *fastest = nullptr;
  for (const RankResult& rank : whole.ranks) {
    if (!rank.median) continue;
    if (!slowest || *rank.median > *slowest->median) slowest = &rank;
    if (!fastest || *rank.median < *fastest->median) fastest = &rank;
  }
  if (!slowest || !(*fastest->median > 0)) return;
  whole.labels[whole.device == "cpu" ? "slowest_rank" : "slowest_gpu"] =
      fmt::format("rank {} on {}{}{}", slowest->rank, slowest->host, slowest->pci.empty() ? "" : ", ", slowest->pci);
  whole.metrics.push_back(value_metric("slowest_over_fastest", *slowest->median / *fastest->median, "1"));
}

// Names a rank that is slow by itself, not by waiting for others. Names none if the run is
// oversubscribed: ranks then share cores unevenly.
void name_straggler(Record& whole) {
  if (flag::has(whole.flags, flag::oversubscribed)) return;
  std::vector<double> paces;
  for (const RankResult& rank : whole.ranks) paces.push_back(rank.pace.value_or(0));
  const auto straggler = find_straggler(paces);
  if (!straggler) return;
  const RankResult& rank = whole.ranks[static_cast<std::size_t>(straggler->rank)];
  whole.flags.push_back(fmt::format("{}{} on {}{}{} took {:.2g} times as long as the others", flag::slow_rank,
                                    rank.rank, rank.host, rank.pci.empty() ? "" : ", ", rank.pci, straggler->ratio));
  whole.slow_rank = {rank.rank, straggler->ratio};
}

// Joins "P2P/CUMEM, SHM/direct" and "NET/IB, P2P/CUMEM", listing each transport once.
std::string join_transports(const std::string& a, const std::string& b) {
  std::set<std::string> transports;
  for (std::string_view rest : {std::string_view(a), std::string_view(b)})
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(", "), rest.size());
      transports.emplace(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 2, rest.size()));
    }
  return fmt::format("{}", fmt::join(transports, ", "));
}

int severity(Status status) {
  switch (status) {
    case Status::ok: return 0;
    case Status::skipped: return 1;
    case Status::failed: return 2;
    case Status::error: break;
  }
  return 3;
}

// Adds the samples during which another rank's GPU was slowed down.
void join_throttled(Samples& whole, const Samples& part) {
  if (!part.throttled) return;
  std::set<int> all(part.throttled->begin(), part.throttled->end());
  if (whole.throttled) all.insert(whole.throttled->begin(), whole.throttled->end());
  whole.throttled.emplace(all.begin(), all.end());
}

// Ranks that share a GPU have seen the same errors.
void join_errors(std::vector<DeviceErrors>& whole, const std::vector<DeviceErrors>& part) {
  for (const DeviceErrors& one : part) {
    const auto same = std::find_if(whole.begin(), whole.end(), [&](const DeviceErrors& other) {
      return other.host == one.host && other.device == one.device && other.name == one.name;
    });
    if (same == whole.end())
      whole.push_back(one);
    else
      same->count = std::max(same->count, one.count);
  }
}

// A failed check that points to no rank is about the rank that made it, if it says anything.
void name_culprit(Check& check, int rank) {
  if (!check.passed && !check.detail.empty() && check.culprits.empty()) check.culprits.push_back({rank});
}

// Merges the same check from another rank into `whole`.
void join_check(Check& whole, const Check& part, int rank) {
  whole.culprits.insert(whole.culprits.end(), part.culprits.begin(), part.culprits.end());
  std::ranges::sort(whole.culprits);
  whole.culprits.erase(std::unique(whole.culprits.begin(), whole.culprits.end()), whole.culprits.end());
  for (const std::string& culprit : part.detail)
    if (whole.detail.size() < 20) whole.detail.push_back(fmt::format("rank {}: {}", rank, culprit));
  if (part.value && (!whole.value || !(*part.value <= *whole.value))) whole.value = part.value;
  whole.passed = whole.passed && part.passed;
}

}  // namespace

Record merge_parts(std::vector<Record> parts) {
  const auto rank_of = [](const Record& part) { return part.ranks.empty() ? -1 : part.ranks.front().rank; };
  std::sort(parts.begin(), parts.end(), [&](const Record& a, const Record& b) { return rank_of(a) < rank_of(b); });
  if (parts.empty() || rank_of(parts.front()) != 0) throw Error("the record of rank 0 is missing");
  if (parts.size() > 1)
    for (Record& part : parts)
      for (Check& check : part.checks) name_culprit(check, rank_of(part));
  Record whole = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Record& part = parts[i];
    const int rank = rank_of(part);
    whole.ranks.insert(whole.ranks.end(), part.ranks.begin(), part.ranks.end());
    join_throttled(whole.samples, part.samples);
    if (part.outside_cpu && (!whole.outside_cpu || part.outside_cpu->lost() > whole.outside_cpu->lost()))
      whole.outside_cpu = std::move(part.outside_cpu);
    if (severity(part.status) > severity(whole.status)) {
      whole.status = part.status;
      whole.failure = part.failure;
      whole.reason = fmt::format("rank {}: {}", rank, part.reason);
    } else if (whole.reason.empty() && !part.reason.empty()) {
      whole.reason = fmt::format("rank {}: {}", rank, part.reason);
    }
    for (const Check& check : part.checks) {
      const auto same = std::find_if(whole.checks.begin(), whole.checks.end(),
                                     [&](const Check& other) { return other.name == check.name; });
      if (same == whole.checks.end())
        whole.checks.push_back(check);
      else
        join_check(*same, check, rank);
    }
    join_errors(whole.errors, part.errors);
    whole.ports.insert(whole.ports.end(), part.ports.begin(), part.ports.end());
    join_settings(whole, part, rank);
    for (const std::string& text : part.flags)
      if (!flag::has(whole.flags, text)) whole.flags.push_back(text);
    if (const auto own = part.labels.find("connections_so_far"); own != part.labels.end())
      whole.labels["connections_so_far"] = join_transports(whole.labels["connections_so_far"], own->second);
    for (const auto& [name, text] : part.labels)
      if (name.starts_with("sensors_of_rank_")) whole.labels[name] = text;
    whole.comparable = whole.comparable && part.comparable;
    whole.seconds = std::max(whole.seconds, part.seconds);
  }
  if (whole.ranks.size() > 1 && whole.params.contains("gpus")) name_slowest_gpu(whole);
  name_straggler(whole);
  if (whole.status == Status::failed) {
    whole.failure = {.kind = FailureKind::wrong_result, .rank = only_culprit(whole.checks)};
    if (whole.world_ranks == 1) whole.failure->rank = 0;
    if (whole.failure->rank) whole.failure->host = whole.host_of(*whole.failure->rank);
  }
  return whole;
}

}  // namespace assay
