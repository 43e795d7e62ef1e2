// Tables of a plan's cases and of the placement of its ranks.
#include "harness/run/dry_run.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/machine/hardware.h"
#include "harness/machine/nvml.h"
#include "harness/plan/machine.h"
#include "harness/run/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t max_rows = 256;  // per world; more ranks are not shown

std::string cases_text(const Plan& plan, DeviceKind device) {
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
  text += fmt::format("plan {} on {}: {}, about {}, {} of memory at most\n", plan.name, name_of(device),
                      plural(plan.cases.size(), "case"), format_seconds(seconds), format_bytes(largest));
  return text;
}

std::string seats_text(const Placement& placement, const std::vector<HostInfo>& hosts, std::size_t width) {
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
    text += fmt::format("{:>5} {} ranks\n", placement.seats.size(), and_more(placement.seats.size(), rows));
  return text;
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

void set_limits_of_gpus(PlanLimits& limits) {
  limits.memory_bytes = 0;
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  if (!nvml) return;
  std::uint64_t least = 0;
  for (const NvmlDevice& gpu : nvml->devices()) {
    const HardwareSheet* sheet = find_hardware(shipped_hardware(), gpu.name());
    if (!sheet || !sheet->memory_bytes) return;
    least = least == 0 ? *sheet->memory_bytes : std::min(least, *sheet->memory_bytes);
  }
  limits.gpu_memory_bytes = least;
}

void set_limits_of_hosts(RunRequest& request, const std::vector<HostInfo>& hosts) {
  if (hosts.size() < 2) return;
  request.limits.world_sizes = walk_hosts(request.allocation, request.plan.device, hosts.front().gpu_count);
  // Before they are asked it is not known what GPUs hosts have.
  if (request.plan.device != DeviceKind::cpu && hosts.front().gpu_count == 0) return;
  request.limits.ranks_per_host = [&request, hosts](int ranks) {
    int max_local = 1;
    for (const RankSeat& seat : place(request, hosts, ranks).seats) max_local = std::max(max_local, seat.local_size);
    return max_local;
  };
}

std::string dry_run_text(const RunRequest& request, const Plan& plan, const std::vector<HostInfo>& hosts) {
  std::set<int> sizes;
  for (const PlannedCase& planned : plan.cases) sizes.insert(planned.ranks);
  std::string text = cases_text(plan, request.plan.device);
  for (const std::string& remark : plan.remarks) text += remark + "\n";
  const std::string& origin = request.allocation.origin;
  if (request.each_host) return text + fmt::format("on each of the {} hosts of {} separately\n", hosts.size(), origin);
  // A GPU plan can be viewed on a machine without GPUs; placement is then unknown.
  if (request.plan.device != DeviceKind::cpu && hosts.front().gpu_count == 0)
    return text + "this machine has no GPU, so the places of the ranks are unknown\n";
  std::size_t width = 4;
  for (const HostInfo& host : hosts) width = std::max(width, host.name.size());
  std::string seats;
  for (const int ranks : sizes) {
    if (const auto why = without_place(request, request.allocation.hosts, hosts, ranks))
      text += fmt::format("cases of {} ranks are skipped: {}\n", ranks, *why);
    else
      seats += seats_text(place(request, hosts, ranks), hosts, width);
  }
  if (seats.empty()) return text;
  text +=
      fmt::format("{:>5}  {:>5}  {:<{}}  {:>4}  {:>3}  {}\n", "ranks", "rank", "host", width, "NUMA", "GPU", "CPUs") +
      seats;
  if (!request.allocation.only_here())
    text += fmt::format("hosts from {}; the others are assumed to be like this one\n", origin);
  return text;
}

}  // namespace assay
