#include "harness/fitness/accept/schedule.h"

#include "harness/core/configs.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/plan/machine.h"
#include "harness/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace assay::accept {

namespace {

using fitness::Floor;
using fitness::UnmeasuredFloor;
using fitness::UnmeasuredFloors;
using Cases = std::map<std::string_view, std::vector<PlannedCase>>;  // by stage

constexpr double audit_seconds = 15;  // about

std::vector<PlannedCase> planned(const Request& request, std::string_view stage, std::span<const Family> catalogue) {
  PlanRequest plan;
  plan.targets = request.level.plans.at(std::string(stage));
  if (const auto ranks = request.ranks_of(stage, request.state.hosts.size())) plan.ranks = {*ranks};
  plan.device = request.device;
  plan.configs = configs_dir();
  PlanLimits limits = machine_limits();
  if (request.device != DeviceKind::cpu) limits.memory_bytes = 0;
  if (!runs_alone(stage)) limits.ranks_per_host = [&request](int) { return request.ranks_per_host; };
  std::vector<PlannedCase> cases = expand_plan(plan, catalogue, limits).cases;
  std::erase_if(cases, [](const PlannedCase& one) { return !one.unfit.empty(); });
  return cases;
}

bool measures(const Request& request, std::string_view stage, const PlannedCase& planned, const Floor& floor) {
  const bool alone = runs_alone(stage);
  const auto nodes = alone ? 1 : static_cast<int>(request.state.hosts.size());
  const auto compared = std::max(request.state.hosts.size(), static_cast<std::size_t>(planned.ranks));
  if (floor.relative && (!alone || compared < fitness::min_fleet)) return false;
  return floor.nodes.value_or(nodes) == nodes && floor.ranks.value_or(planned.ranks) == planned.ranks &&
         fitness::key_matches(floor.key, planned.key);
}

std::vector<UnmeasuredFloor> floors_without_case(const Request& request, const Cases& cases) {
  UnmeasuredFloors asked;
  if (request.user) asked.expect(*request.user, false);
  if (request.fleet) asked.expect(*request.fleet, true);
  std::vector<UnmeasuredFloor> without = asked.left();
  std::erase_if(without, [&](const UnmeasuredFloor& one) {
    if (!one.floor.device.empty() && one.floor.device != name_of(request.device)) return false;
    return std::ranges::any_of(cases, [&](const auto& stage) {
      return std::ranges::any_of(
          stage.second, [&](const PlannedCase& planned) { return measures(request, stage.first, planned, one.floor); });
    });
  });
  return without;
}

std::string plans_text(const std::vector<std::string>& plans) {
  std::vector<std::string> names;
  for (const std::string& plan : plans) names.push_back(std::filesystem::path(plan).stem().string());
  return joined(names);
}

}  // namespace

std::string schedule_text(const Request& request, std::span<const Family> catalogue) {
  const std::vector<std::string>& hosts = request.state.hosts;
  std::string text = fmt::format("accept level {} on {} of {}: {}\n", request.level.name, plural(hosts.size(), "host"),
                                 request.allocation.origin, one_line(joined(hosts), 400));
  if (!request.gpus.empty()) text += request.gpus + ", as they say\n";
  std::vector<std::string> leaves;
  for (const auto& [host, leaf] : request.state.leaves) leaves.push_back(fmt::format("{} {}", host, leaf));
  if (!leaves.empty()) text += fmt::format("leaf switches: {}\n", one_line(joined(leaves), 400));
  if (const std::string& why = request.state.no_leaves; !why.empty())
    text += fmt::format("leaf switches are not known: scontrol show topology: {}\n", why);
  Cases cases;
  for (const std::string_view stage : run_stages)
    if (request.why_not_run(stage, hosts.size()).empty()) cases[stage] = planned(request, stage, catalogue);
  for (const std::string& line : fitness::unmeasured_lines(floors_without_case(request, cases))) text += line + "\n";
  text += fmt::format("  {:<12} about {}\n", "audit", format_seconds(audit_seconds));
  double all = audit_seconds;
  for (const std::string_view stage : run_stages) {
    const std::string why = request.why_not_run(stage, hosts.size());
    if (!why.empty()) {
      const bool required = request.level.required.contains(std::string(stage));
      text += fmt::format("  {:<12} not run{}: {}\n", stage, required ? ", so no host can pass" : "", why);
      continue;
    }
    double seconds = 0;
    for (const PlannedCase& one : cases[stage]) seconds += one.estimated_seconds;
    all += seconds;
    text += fmt::format("  {:<12} about {}: {}\n", stage, format_seconds(seconds),
                        plans_text(request.level.plans.at(std::string(stage))));
  }
  return text + fmt::format(
                    "about {} if no host fails: what is slow is measured again, and stages of all hosts are "
                    "repeated without those that failed\n",
                    format_seconds(all));
}

}  // namespace assay::accept
