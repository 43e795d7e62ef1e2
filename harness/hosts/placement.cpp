// Assigns ranks to hosts, then divides the cores of each machine among its ranks.
#include "harness/hosts/placement.h"

#include "harness/core/error.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/topology.h"
#include "harness/hosts/cpu_share.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>
#include <utility>

namespace assay {

namespace {

constexpr int max_hosts_named = 8;

int sum(const std::vector<int>& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

// A host and its slots in the allocation.
struct Offer {
  const HostInfo& host;
  std::optional<int> slots;
};

// How many ranks a host takes before any have to share.
int unshared_ranks(const Offer& offer, const PlacementRequest& request) {
  const int gpus = offer.host.gpu_count;
  if (request.device == DeviceKind::cpu) return offer.slots.value_or(1);
  if (!offer.slots) return gpus;
  return request.share_gpu && gpus > 0 ? *offer.slots : std::min(*offer.slots, gpus);
}

// "n1 2, n2 2", the first few.
std::string counts_text(const std::vector<Offer>& hosts, const std::vector<int>& counts) {
  std::string text;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i == max_hosts_named) return text + ", ...";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", hosts[i].host.name, counts[i]);
  }
  return text;
}

[[noreturn]] void refuse_gpus(const std::vector<Offer>& hosts, const PlacementRequest& request) {
  std::vector<int> gpus;
  for (const Offer& offer : hosts) gpus.push_back(offer.host.gpu_count);
  const int total = sum(gpus);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool one = hosts.size() == 1;
  throw UsageError(fmt::format("--ranks {}: {} {} {}{}; --share-gpu lets ranks share them", request.ranks,
                               one ? "this host has" : fmt::format("the hosts of {} have", request.origin), total,
                               total == 1 ? "GPU" : "GPUs",
                               one ? visible ? fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible) : ""
                                   : fmt::format(" ({})", counts_text(hosts, gpus))));
}

[[noreturn]] void refuse_slots(const std::vector<Offer>& hosts, const PlacementRequest& request) {
  std::vector<int> slots;
  for (const Offer& offer : hosts) slots.push_back(unshared_ranks(offer, request));
  throw UsageError(fmt::format("--ranks {} is beyond the {} slots of {} ({})", request.ranks, sum(slots),
                               request.origin, counts_text(hosts, slots)));
}

[[noreturn]] void refuse_cpus(const HostInfo& host, bool alone, const PlacementRequest& request) {
  throw UsageError(fmt::format("--ranks {} is beyond the slots: {} has {} CPUs, and takes at most {} ranks per CPU",
                               request.ranks, alone ? "this machine" : host.name, host.cpu_count, max_ranks_per_cpu));
}

// The number of ranks on each host.
std::vector<int> ranks_by_host(const std::vector<Offer>& hosts, const PlacementRequest& request) {
  std::vector<int> counts;
  int left = request.ranks;
  for (const Offer& offer : hosts) {
    counts.push_back(std::clamp(unshared_ranks(offer, request), 0, left));
    left -= counts.back();
  }
  if (left == 0) return counts;
  const bool on_cpu = request.device == DeviceKind::cpu;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (!hosts[i].slots && (on_cpu || (request.share_gpu && hosts[i].host.gpu_count > 0))) open.push_back(i);
  if (open.empty()) {
    const bool slots_given = std::ranges::any_of(hosts, [](const Offer& offer) { return offer.slots.has_value(); });
    int slots = 0;
    for (const Offer& offer : hosts) slots += offer.slots.value_or(0);
    if (on_cpu || (slots_given && request.ranks > slots)) refuse_slots(hosts, request);
    refuse_gpus(hosts, request);
  }
  int total = left;
  for (const std::size_t i : open) total += counts[i];
  for (std::size_t i = 0; i < open.size(); ++i) {
    const int hosts_open = static_cast<int>(open.size());
    counts[open[i]] = total / hosts_open + (static_cast<int>(i) < total % hosts_open ? 1 : 0);
    if (const HostInfo& host = hosts[open[i]].host; on_cpu && counts[open[i]] > max_ranks_per_cpu * host.cpu_count)
      refuse_cpus(host, hosts.size() == 1, request);
  }
  return counts;
}

// The NUMA node of a seat's GPU; -1: unknown.
int gpu_node(const RankSeat& seat, const HostInfo& host) {
  if (!seat.gpu || !host.gpus || static_cast<std::size_t>(*seat.gpu) >= host.gpus->size()) return -1;
  return (*host.gpus)[static_cast<std::size_t>(*seat.gpu)].numa_node.value_or(-1);
}

std::vector<std::vector<int>> cores_of_node(const HostInfo& host, int node) {
  std::vector<std::vector<int>> own;
  for (const NodeCpus& near : host.nodes)
    for (const std::vector<int>& core : host.cores)
      if (near.number == node && !core.empty() && std::ranges::find(near.cpus, core.front()) != near.cpus.end())
        own.push_back(core);
  return own;
}

// Ranks with GPUs on one NUMA node divide the cores of that node; ranks of unknown nodes divide all cores.
void assign_cpus(std::vector<RankSeat*>& seats, const HostInfo& host) {
  const auto size = static_cast<int>(seats.size());
  for (int i = 0; i < size; ++i) {
    RankSeat& seat = *seats[static_cast<std::size_t>(i)];
    const int node = size > 1 ? gpu_node(seat, host) : -1;
    const std::vector<std::vector<int>> own = node < 0 ? std::vector<std::vector<int>>() : cores_of_node(host, node);
    if (own.empty()) {
      seat.cpus = cpu_share(host.cores, i, size);
    } else {
      int place = 0, ranks = 0;
      for (int other = 0; other < size; ++other) {
        if (gpu_node(*seats[static_cast<std::size_t>(other)], host) != node) continue;
        if (other < i) ++place;
        ++ranks;
      }
      seat.cpus = cpu_share(own, place, ranks);
    }
    std::ranges::sort(seat.cpus);
    seat.numa_node = node_of_cpus(host.nodes, seat.cpus);
  }
}

}  // namespace

Placement place_ranks(const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                      const PlacementRequest& request) {
  ASSAY_CHECK(!hosts.empty() && slots.size() == hosts.size() && request.ranks > 0, "{} ranks on {} of {} hosts",
              request.ranks, slots.size(), hosts.size());
  std::vector<Offer> offers;
  for (std::size_t i = 0; i < hosts.size(); ++i) offers.push_back({hosts[i], slots[i].slots});
  const std::vector<int> counts = ranks_by_host(offers, request);
  Placement placement;
  for (std::size_t h = 0; h < hosts.size(); ++h)
    for (int local = 0; local < counts[h]; ++local) {
      RankSeat seat;
      seat.rank = static_cast<int>(placement.seats.size());
      seat.host = static_cast<int>(h);
      seat.local_rank = local;
      seat.local_size = counts[h];
      if (request.device != DeviceKind::cpu && hosts[h].gpu_count > 0) seat.gpu = local % hosts[h].gpu_count;
      placement.seats.push_back(std::move(seat));
    }
  placement.hosts = static_cast<int>(std::ranges::count_if(counts, [](int count) { return count > 0; }));
  // Hosts with the same CPUs share them.
  std::vector<bool> done(hosts.size());
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (counts[h] == 0) continue;
    for (std::size_t other = 0; other < h; ++other)
      if (counts[other] > 0 && share_cpus(hosts[other], hosts[h])) placement.one_machine = true;
    if (done[h]) continue;
    std::vector<RankSeat*> seats;
    for (RankSeat& seat : placement.seats) {
      const auto place = static_cast<std::size_t>(seat.host);
      if (place != h && !(share_cpus(hosts[h], hosts[place]) && hosts[h].cores == hosts[place].cores)) continue;
      done[place] = true;
      seats.push_back(&seat);
    }
    assign_cpus(seats, hosts[h]);
    if (request.device == DeviceKind::cpu && static_cast<int>(seats.size()) > hosts[h].core_count)
      placement.oversubscribed = true;
  }
  return placement;
}

std::optional<Placement> place_elsewhere(const Placement& planned, const std::vector<bool>& gone,
                                         const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                                         const PlacementRequest& request) {
  std::vector<int> left;
  std::vector<AllocatedHost> slots_left;
  std::vector<HostInfo> hosts_left;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (gone[h]) continue;
    left.push_back(static_cast<int>(h));
    slots_left.push_back(slots[h]);
    hosts_left.push_back(hosts[h]);
  }
  if (left.empty()) return std::nullopt;
  try {
    Placement placement = place_ranks(slots_left, hosts_left, request);
    if (std::tie(placement.hosts, placement.oversubscribed, placement.one_machine) !=
        std::tie(planned.hosts, planned.oversubscribed, planned.one_machine))
      return std::nullopt;
    for (RankSeat& seat : placement.seats) seat.host = left[static_cast<std::size_t>(seat.host)];
    return placement;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::vector<NodeCpus> numa_nodes() {
  std::vector<NodeCpus> nodes;
  for (const cpu::NumaNode& node : cpu::topology().numa_nodes) nodes.push_back({node.number, node.cpus});
  return nodes;
}

std::optional<int> node_of_cpus(const std::vector<NodeCpus>& nodes, const std::vector<int>& cpus) {
  if (cpus.empty()) return std::nullopt;
  for (const NodeCpus& node : nodes)
    if (std::ranges::all_of(cpus, [&](int cpu) { return std::ranges::find(node.cpus, cpu) != node.cpus.end(); }))
      return node.number;
  return std::nullopt;
}

std::vector<int> walk_hosts(const Allocation& allocation, DeviceKind device, int gpus_per_host) {
  const auto count = allocation.hosts.size();
  std::vector<int> sizes;
  if (count < 2) return sizes;
  const auto ranks_of_first = [&](std::size_t hosts) {
    int ranks = 0;
    for (std::size_t i = 0; i < hosts; ++i)
      ranks += allocation.hosts[i].slots.value_or(device == DeviceKind::cpu ? 1 : std::max(1, gpus_per_host));
    return ranks;
  };
  for (std::size_t hosts = 1; hosts < count; hosts *= 2) sizes.push_back(ranks_of_first(hosts));
  sizes.push_back(ranks_of_first(count));
  return sizes;
}

std::string cpu_sets(const std::vector<RankSeat>& seats) {
  std::string text;
  for (const RankSeat& seat : seats) {
    if (seat.rank > 0) text += ';';
    text += cpu_list_text(seat.cpus);
  }
  return text;
}

std::string_view cpu_set_of(std::string_view sets, int rank) {
  for (; rank > 0; --rank) {
    const std::size_t end = sets.find(';');
    if (end == sets.npos) return {};
    sets.remove_prefix(end + 1);
  }
  return sets.substr(0, sets.find(';'));
}

}  // namespace assay
