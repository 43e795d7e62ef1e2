#include "harness/fitness/cluster/equal_losses.h"

#include "harness/core/text.h"
#include "harness/fitness/cluster/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace assay::fitness {

namespace {

constexpr const char* loss_metric = "loss_step_10";

struct Trained {
  std::string host;
  double loss = 0;
};

// Names all on which the bits of a loss depend beside the case; empty if they do not repeat, or if each host chose its
// kernels by time.
std::string kernels_of(const Record& record) {
  const bool fixed = record.device == "cpu" || (record.params.is_object() && record.params.contains("deterministic") &&
                                                record.params.at("deterministic") == Json(true));
  if (!fixed || record.attribute("repeats") != "to the bit") return {};
  std::string all;
  for (const auto& [name, choice] : record.choices) all += fmt::format("{}={}\n", name, choice);
  for (const char* name : {"libraries", "communication"}) all += record.attribute(name).value_or("") + "\n";
  for (const RankResult& rank : record.ranks) all += rank.device + "\n";
  return all;
}

// Blames those that do not have the loss that more than half have.
void compare(const std::vector<Trained>& all, const std::string& of, const char* why,
             const std::function<bool(double, double)>& equal, HostChecks& checks) {
  const auto agree = [&](const Trained& one) {
    return std::ranges::count_if(all, [&](const Trained& other) { return equal(one.loss, other.loss); });
  };
  const auto usual = std::ranges::max_element(all, {}, agree);
  const auto same = static_cast<std::size_t>(agree(*usual));
  if (same == all.size()) return;
  const bool majority = 2 * same > all.size();
  for (const Trained& one : all) {
    if (!checks.contains(one.host) || (majority && equal(one.loss, usual->loss))) continue;
    HostCheck& check = checks[one.host];
    add_line(check, majority ? Fitness::fail : Fitness::unsure,
             fmt::format("{}: its loss after ten steps is {:.17g}, that of {} of {} is {:.17g}: {}", of, one.loss, same,
                         plural(all.size(), "host"), usual->loss, why));
    check.blame("host");
    check.broken.insert(of);
  }
}

}  // namespace

void judge_equal_losses(const RunSet& runs, const std::vector<std::string>& hosts, HostChecks& checks) {
  struct Case {
    std::string key;
    std::vector<Trained> all;
    std::map<std::string, std::vector<Trained>> by_kernels;
  };
  std::map<std::string, Case> cases;
  for (const Entry& entry : runs.entries()) {
    const Record& record = *entry.record;
    const auto loss = std::ranges::find(record.metrics, loss_metric, &Metric::name);
    if (record.status != Status::ok || loss == record.metrics.end() || !loss->value) continue;
    Case& one = cases[record.identity().unplaced().text()];
    one.key = record.key;
    const Trained trained = {host_of(record, hosts), *loss->value};
    one.all.push_back(trained);
    if (const std::string kernels = kernels_of(record); !kernels.empty()) one.by_kernels[kernels].push_back(trained);
  }
  for (const auto& [name, one] : cases) {
    for (const auto& [kernels, trained] : one.by_kernels)
      compare(trained, one.key, "equal kernels give equal bits", std::equal_to<>(), checks);
    if (one.by_kernels.size() != 1 || one.by_kernels.begin()->second.size() < one.all.size())
      compare(
          one.all, one.key, "other kernels do not explain that",
          [](double a, double b) { return std::abs(a - b) <= other_kernels * std::max(std::abs(a), std::abs(b)); },
          checks);
  }
}

}  // namespace assay::fitness
