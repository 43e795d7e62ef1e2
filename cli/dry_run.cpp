// Tables of a plan's cases and of the placement of its ranks.
#include "cli/dry_run.h"

#include "cli/machine.h"
#include "harness/core/units.h"
#include "harness/run/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace assay::cli {

namespace {

constexpr std::size_t max_rows = 256;  // per world; more ranks are not shown

void print_cases(const Plan& plan, DeviceKind device) {
  std::size_t width = 4;
  for (const PlannedCase& planned : plan.cases) width = std::max(width, planned.key.size());
  width = std::min<std::size_t>(width, 120);
  const auto amount = [](double value, std::string_view unit) {
    return value > 0 ? format_quantity(value, unit) : std::string("-");
  };
  std::string text = fmt::format("{:<{}}  {:>5}  {:>10}  {:>10}  {:>12}  {:>8}\n", "case", width, "ranks", "memory",
                                 "bytes", "flops", "time");
  double seconds = 0, largest = 0;
  for (const PlannedCase& planned : plan.cases) {
    const Estimate& estimate = planned.estimate;
    text += fmt::format("{:<{}}  {:>5}  {:>10}  {:>10}  {:>12}  {:>8}\n", planned.key, width, planned.ranks,
                        amount(estimate.memory_bytes * planned.ranks, "B"), amount(estimate.bytes, "B"),
                        amount(estimate.flops, "FLOP"),
                        planned.unfit.empty() ? format_seconds(planned.estimated_seconds) : "skipped");
    if (!planned.unfit.empty()) continue;
    seconds += planned.estimated_seconds;
    largest = std::max(largest, estimate.memory_bytes * planned.ranks);
  }
  text += fmt::format("plan {} on {}: {} {}, about {} at most, {} of memory at most\n", plan.name,
                      device == DeviceKind::cpu ? "cpu" : "cuda", plan.cases.size(),
                      plan.cases.size() == 1 ? "case" : "cases", format_seconds(seconds), format_bytes(largest));
  fmt::print("{}", text);
}

void print_seats(const Placement& placement, const std::vector<HostInfo>& hosts, std::size_t width) {
  const auto number = [](const std::optional<int>& value) { return value ? std::to_string(*value) : std::string("-"); };
  const std::size_t rows = std::min(placement.seats.size(), max_rows);
  std::string text;
  for (std::size_t i = 0; i < rows; ++i) {
    const RankSeat& seat = placement.seats[i];
    text += fmt::format("{:>5}  {:>5}  {:<{}}  {:>4}  {:>3}  {}\n", placement.seats.size(), seat.rank,
                        hosts[static_cast<std::size_t>(seat.host)].name, width, number(seat.numa_node),
                        number(seat.gpu), cpu_list_text(seat.cpus));
  }
  if (rows < placement.seats.size())
    text += fmt::format("{:>5}  and {} more ranks\n", placement.seats.size(), placement.seats.size() - rows);
  fmt::print("{}", text);
}

}  // namespace

std::vector<HostInfo> hosts_like_this(const RunRequest& request) {
  int gpus = 0;
  if (request.plan.device != DeviceKind::cpu) {
    const auto visible = gpus_of_environment();
    gpus = request.gpus.value_or(static_cast<int>(visible ? visible->size() : gpus_here().size()));
  }
  const HostInfo here = probe_host(gpus);
  std::vector<HostInfo> hosts;
  for (const AllocatedHost& allocated : request.allocation.hosts) {
    hosts.push_back(here);
    hosts.back().name = allocated.name.empty() ? fmt::format("(host {})", hosts.size()) : allocated.name;
    if (!allocated.here) hosts.back().boot_id.clear();
  }
  return hosts;
}

Placement place(const RunRequest& request, const std::vector<HostInfo>& hosts, int ranks) {
  return place_ranks(request.allocation.hosts, hosts,
                     {ranks, request.plan.device, request.share_gpu, request.allocation.origin});
}

void print_dry_run(const RunRequest& request, const Plan& plan, const std::vector<HostInfo>& hosts) {
  std::set<int> sizes;
  for (const PlannedCase& planned : plan.cases) sizes.insert(planned.ranks);
  std::map<int, Placement> placements;
  std::map<int, std::string> skipped;
  // A GPU plan can be viewed on a machine without GPUs; placement is then unknown.
  if (!request.each_host && (request.plan.device == DeviceKind::cpu || hosts.front().gpu_count > 0)) {
    for (const int ranks : sizes) {
      if (auto why = without_place(request, request.allocation.hosts, hosts, ranks))
        skipped[ranks] = std::move(*why);
      else
        placements[ranks] = place(request, hosts, ranks);
    }
  }
  print_cases(plan, request.plan.device);
  for (const auto& [ranks, why] : skipped) fmt::print("cases of {} ranks are skipped: {}\n", ranks, why);
  const std::string& origin = request.allocation.origin;
  if (request.each_host)
    fmt::print("on each of the {} hosts of {} separately\n", hosts.size(), origin);
  else if (placements.empty() && skipped.empty())
    fmt::print("this machine has no GPU, so the places of the ranks are unknown\n");
  if (placements.empty()) return;
  std::size_t width = 4;
  for (const HostInfo& host : hosts) width = std::max(width, host.name.size());
  fmt::print("{:>5}  {:>5}  {:<{}}  {:>4}  {:>3}  {}\n", "ranks", "rank", "host", width, "NUMA", "GPU", "CPUs");
  for (const auto& [ranks, placement] : placements) print_seats(placement, hosts, width);
  if (!request.allocation.only_here())
    fmt::print("hosts from {}; the others are assumed to be like this one\n", origin);
}

}  // namespace assay::cli
