// A record tells about itself here; its form in JSON is in record_json.cpp.
#include "harness/record/record.h"
#include "harness/record/flags.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <algorithm>
#include <set>

namespace assay {

void check_schema(std::int64_t schema) {
  if (schema < 1 || schema > record_schema)
    throw Error(fmt::format("schema {} is not known: this build reads schemas 1 and {}", schema, record_schema));
}

void set_from_samples(Metric& metric, std::size_t count, const Summary& times) {
  metric.value.reset();
  metric.ci95.reset();
  if (count == 0) return;
  const double work = metric.work.value();
  if (metric.better == Better::lower) {
    metric.value = times.median / work;
    metric.ci95 = scaled(times.ci95, 1 / work);
    return;
  }
  if (times.median > 0) metric.value = work / times.median;
  // The fast end of the times is the high end of the rate.
  if (metric.value && times.ci95 && times.ci95->low > 0)
    metric.ci95 = Interval{work / times.ci95->high, work / times.ci95->low};
}

std::optional<int> only_culprit(const std::vector<Check>& checks) {
  std::set<int> ranks;
  for (const Check& check : checks)
    for (const Culprit& culprit : check.culprits)
      if (!check.passed) ranks.insert(culprit.rank);
  return ranks.size() == 1 ? std::optional(*ranks.begin()) : std::nullopt;
}

std::string Identity::text() const {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", key, device, ranks, nodes, fmt::join(hosts, ","), seed);
}

Identity Identity::on_any_host() const {
  Identity same = *this;
  same.hosts.clear();
  return same;
}

Identity Identity::unplaced() const {
  Identity same = on_any_host();
  same.nodes = 1;
  return same;
}

Identity Record::identity() const {
  std::set<std::string> hosts;
  for (const RankResult& rank : ranks)
    if (!rank.host.empty()) hosts.insert(rank.host);
  return {key, device, world_ranks, world_nodes, {hosts.begin(), hosts.end()}, seed};
}

std::optional<std::string> Record::attribute(const std::string& name) const {
  for (const Attributes* these : {&conditions, &choices, &labels})
    if (const auto found = these->find(name); found != these->end()) return found->second;
  return std::nullopt;
}

Attributes Record::attributes() const {
  Attributes all = conditions;
  all.insert(choices.begin(), choices.end());
  all.insert(labels.begin(), labels.end());
  return all;
}

std::string Record::host_of(int rank) const {
  for (const RankResult& one : ranks)
    if (one.rank == rank) return one.host;
  return {};
}

bool Record::injected() const { return flag::has_prefix(flags, flag::injected); }

}  // namespace assay
