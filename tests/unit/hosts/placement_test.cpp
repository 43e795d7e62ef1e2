// Seats of ranks on hosts of many shapes.
#include "harness/hosts/placement.h"
#include "harness/device/cpu/cpu_list.h"

#include "harness/core/error.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A host and its slots.
struct Offered {
  HostInfo info;
  std::optional<int> slots;
};

// `cores` cores of one CPU each, from `first` on.
Offered host(const std::string& name, int cores, int first = 0) {
  HostInfo made;
  made.name = name;
  made.boot_id = "boot-" + name;
  for (int core = 0; core < cores; ++core) made.cores.push_back({first + core});
  made.core_count = made.cpu_count = cores;
  return {made, std::nullopt};
}

Offered with_slots(Offered made, int slots) {
  made.slots = slots;
  return made;
}

Offered with_gpus(Offered made, int gpus) {
  made.info.gpu_count = gpus;
  return made;
}

Placement place(const std::vector<Offered>& offered, const PlacementRequest& request) {
  std::vector<AllocatedHost> slots;
  std::vector<HostInfo> hosts;
  for (const Offered& one : offered) {
    slots.push_back({one.info.name, one.slots, "", false});
    hosts.push_back(one.info);
  }
  return place_ranks(slots, hosts, request);
}

PlacementRequest on_cpu(int ranks) { return {ranks, DeviceKind::cpu, false, "--hostfile h"}; }
PlacementRequest on_gpu(int ranks, bool share = false) { return {ranks, DeviceKind::cuda, share, "--hostfile h"}; }

std::vector<int> hosts_of(const Placement& placement) {
  std::vector<int> hosts;
  for (const RankSeat& seat : placement.seats) hosts.push_back(seat.host);
  return hosts;
}

std::vector<std::string> cpus_of(const Placement& placement) {
  std::vector<std::string> cpus;
  for (const RankSeat& seat : placement.seats) cpus.push_back(cpu_list_text(seat.cpus));
  return cpus;
}

std::string refusal(const std::vector<Offered>& hosts, const PlacementRequest& request) {
  return test::refusal([&] { place(hosts, request); });
}

TEST(PlaceRanks, HostsAreFilledInTheirOrder) {
  const std::vector<Offered> hosts = {with_slots(host("n1", 4), 3), with_slots(host("n2", 4), 2)};
  const Placement four = place(hosts, on_cpu(4));
  EXPECT_THAT(hosts_of(four), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(cpus_of(four), ElementsAre("0", "1", "2-3", "0-3"));
  EXPECT_EQ(four.hosts, 2);
  EXPECT_EQ(four.seats[2].local_rank, 2);
  EXPECT_EQ(four.seats[2].local_size, 3);
  EXPECT_EQ(four.seats[3].local_rank, 0);
  EXPECT_FALSE(four.oversubscribed);
  EXPECT_FALSE(four.one_machine);
  EXPECT_EQ(place(hosts, on_cpu(2)).hosts, 1);
  EXPECT_EQ(refusal(hosts, on_cpu(6)), "--ranks 6 is beyond the 5 slots of --hostfile h (n1 3, n2 2)");
}

TEST(PlaceRanks, WithoutSlotsOnePerHostThenEvenly) {
  const std::vector<Offered> hosts = {host("a", 2), host("b", 2), host("c", 2)};
  EXPECT_THAT(hosts_of(place(hosts, on_cpu(2))), ElementsAre(0, 1));
  EXPECT_THAT(hosts_of(place(hosts, on_cpu(3))), ElementsAre(0, 1, 2));
  EXPECT_THAT(hosts_of(place(hosts, on_cpu(7))), ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_TRUE(place(hosts, on_cpu(7)).oversubscribed);
  EXPECT_FALSE(place(hosts, on_cpu(6)).oversubscribed);
  EXPECT_EQ(place(hosts, on_cpu(24)).seats.size(), 24u);
  EXPECT_THAT(refusal(hosts, on_cpu(25)), HasSubstr("--ranks 25 is beyond the slots: a has 2 CPUs"));
  EXPECT_THAT(refusal({host("a", 2)}, on_cpu(9)),
              HasSubstr("this machine has 2 CPUs, and takes at most 4 ranks per CPU"));
  // Hosts without slots take one rank each, then the rest.
  const std::vector<Offered> mixed = {with_slots(host("a", 2), 2), host("b", 4)};
  EXPECT_THAT(hosts_of(place(mixed, on_cpu(3))), ElementsAre(0, 0, 1));
  EXPECT_THAT(hosts_of(place(mixed, on_cpu(6))), ElementsAre(0, 0, 1, 1, 1, 1));
}

TEST(PlaceRanks, GpusAreSlots) {
  const std::vector<Offered> hosts = {with_gpus(host("a", 4), 2), with_gpus(host("b", 4), 4)};
  const Placement five = place(hosts, on_gpu(5));
  EXPECT_THAT(hosts_of(five), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_EQ(five.seats[1].gpu, 1);
  EXPECT_EQ(five.seats[2].gpu, 0);
  EXPECT_FALSE(five.oversubscribed);
  EXPECT_EQ(refusal(hosts, on_gpu(7)),
            "--ranks 7: the hosts of --hostfile h have 6 GPUs (a 2, b 4); --share-gpu lets ranks share them");
  EXPECT_EQ(place(hosts, on_gpu(8, true)).seats.size(), 8u);
  EXPECT_THAT(refusal({with_gpus(host("a", 4), 1)}, on_gpu(2)), HasSubstr("--ranks 2: this host has 1 GPU"));
  EXPECT_EQ(place({with_gpus(host("a", 4), 1)}, on_gpu(3, true)).seats[2].gpu, 0);
  // Slots beyond the GPUs count only if ranks may share them.
  EXPECT_THAT(
      refusal({with_gpus(with_slots(host("a", 4), 2), 1), with_gpus(with_slots(host("b", 4), 2), 1)}, on_gpu(3)),
      HasSubstr("have 2 GPUs (a 1, b 1)"));
  EXPECT_THAT(refusal({with_gpus(with_slots(host("a", 4), 1), 4)}, on_gpu(2)), HasSubstr("beyond the 1 slots"));
}

TEST(PlaceRanks, RanksGetCoresNearTheirGpu) {
  Offered one = with_gpus(host("a", 8), 3);
  one.info.nodes = {{0, {0, 1, 2, 3}}, {1, {4, 5, 7}}};
  one.info.gpus = std::vector<GpuPlace>{{"0000:1b:00.0", "", 0}, {"0000:43:00.0", "", 0}, {"0000:9b:00.0", "", 1}};
  const Placement three = place({one}, on_gpu(3));
  EXPECT_THAT(cpus_of(three), ElementsAre("0-1", "2-3", "4-5,7"));
  EXPECT_EQ(three.seats[0].numa_node, 0);
  EXPECT_EQ(three.seats[2].numa_node, 1);
  EXPECT_THAT(cpus_of(place({one}, on_gpu(1))), ElementsAre("0-7")) << "one rank has its host to itself";
  one.info.nodes = {{0, {8}}, {1, {9}}};
  EXPECT_THAT(cpus_of(place({one}, on_gpu(2))), ElementsAre("0-3", "4-7")) << "no core near the GPUs may be used";
  EXPECT_FALSE(place({one}, on_gpu(2)).seats[0].numa_node);
}

TEST(PlaceRanks, HostsThatAreOneMachineShareItsCpus) {
  std::vector<Offered> hosts = {host("n1", 4), host("n2", 4), host("n3", 4), host("n4", 4)};
  for (Offered& one : hosts) one.info.boot_id = "same";
  const Placement four = place(hosts, on_cpu(4));
  EXPECT_THAT(cpus_of(four), ElementsAre("0", "1", "2", "3"));
  EXPECT_TRUE(four.one_machine);
  EXPECT_EQ(four.hosts, 4);
  EXPECT_FALSE(four.oversubscribed);
  EXPECT_TRUE(place(hosts, on_cpu(5)).oversubscribed);
  EXPECT_FALSE(place(hosts, on_cpu(1)).one_machine);
  EXPECT_THAT(cpus_of(place(hosts, on_cpu(1))), ElementsAre("0-3"));
  // Parts of one machine that do not overlap (divided by a scheduler) stay separate.
  hosts = {host("n1", 2, 0), host("n2", 2, 2)};
  for (Offered& one : hosts) one.info.boot_id = "same";
  EXPECT_FALSE(place(hosts, on_cpu(2)).one_machine);
  EXPECT_THAT(cpus_of(place(hosts, on_cpu(2))), ElementsAre("0-1", "2-3"));
}

TEST(PlaceRanks, NoCpuIsGivenTwiceWhileThereAreEnough) {
  const std::vector<Offered> hosts = {with_slots(host("a", 7), 5), with_slots(host("b", 3), 3)};
  const Placement all = place(hosts, on_cpu(8));
  std::set<std::pair<int, int>> seen;
  for (const RankSeat& seat : all.seats) {
    EXPECT_FALSE(seat.cpus.empty());
    for (const int cpu : seat.cpus) EXPECT_TRUE(seen.insert({seat.host, cpu}).second);
  }
  EXPECT_EQ(seen.size(), 10u);
}

Allocation of_hosts(const std::vector<std::optional<int>>& slots) {
  Allocation allocation;
  for (std::size_t i = 0; i < slots.size(); ++i)
    allocation.hosts.push_back({"n" + std::to_string(i), slots[i], "", i == 0});
  return allocation;
}

// Where the ranks go without the `lost` hosts.
std::optional<Placement> elsewhere(const std::vector<Offered>& offered, const PlacementRequest& request,
                                   const std::vector<std::size_t>& lost) {
  std::vector<AllocatedHost> slots;
  std::vector<HostInfo> hosts;
  std::vector<bool> gone(offered.size());
  for (const std::size_t host : lost) gone[host] = true;
  for (const Offered& one : offered) {
    slots.push_back({one.info.name, one.slots, "", false});
    hosts.push_back(one.info);
  }
  return place_elsewhere(place(offered, request), gone, slots, hosts, request);
}

TEST(PlaceElsewhere, TheSameWorldOnOtherHosts) {
  const std::vector<Offered> three = {host("a", 4), host("b", 4), host("c", 4)};
  EXPECT_THAT(hosts_of(*elsewhere(three, on_cpu(2), {})), ElementsAre(0, 1));
  EXPECT_THAT(hosts_of(*elsewhere(three, on_cpu(2), {0})), ElementsAre(1, 2));
  EXPECT_THAT(hosts_of(*elsewhere(three, on_cpu(2), {1})), ElementsAre(0, 2));
  EXPECT_THAT(hosts_of(*elsewhere(three, on_cpu(1), {0, 1})), ElementsAre(2));
}

TEST(PlaceElsewhere, ADifferentWorldIsNotRun) {
  const std::vector<Offered> three = {host("a", 4), host("b", 4), host("c", 4)};
  EXPECT_FALSE(elsewhere(three, on_cpu(3), {2}));  // it would be on two hosts
  EXPECT_FALSE(elsewhere(three, on_cpu(1), {0, 1, 2}));
  EXPECT_FALSE(elsewhere({with_slots(host("a", 4), 2), with_slots(host("b", 4), 2)}, on_cpu(4), {0}));
  EXPECT_FALSE(elsewhere({with_gpus(host("a", 4), 2), with_gpus(host("b", 4), 2)}, on_gpu(3), {1}));
  EXPECT_FALSE(elsewhere({with_slots(host("a", 4), 2), with_slots(host("b", 1), 2)}, on_cpu(2), {0}));  // two on a core
}

TEST(WalkHosts, DoublesUpToAll) {
  const auto none = std::optional<int>();
  EXPECT_THAT(walk_hosts(of_hosts({none}), DeviceKind::cpu, 0), IsEmpty());
  EXPECT_THAT(walk_hosts(of_hosts({none, none}), DeviceKind::cpu, 0), ElementsAre(1, 2));
  EXPECT_THAT(walk_hosts(of_hosts({none, none, none, none}), DeviceKind::cpu, 0), ElementsAre(1, 2, 4));
  EXPECT_THAT(walk_hosts(of_hosts({none, none, none, none, none, none}), DeviceKind::cpu, 0), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(walk_hosts(of_hosts({4, 4, 2}), DeviceKind::cpu, 0), ElementsAre(4, 8, 10));
  EXPECT_THAT(walk_hosts(of_hosts({none, none, none}), DeviceKind::cuda, 8), ElementsAre(8, 16, 24));
}

TEST(CpuSets, AreOneWordForAllRanks) {
  std::vector<RankSeat> seats(3);
  for (int rank = 0; rank < 3; ++rank) seats[static_cast<std::size_t>(rank)].rank = rank;
  seats[0].cpus = {0, 1, 2, 8};
  seats[2].cpus = {4};
  const std::string sets = cpu_sets(seats);
  EXPECT_EQ(sets, "0-2,8;;4");
  EXPECT_EQ(cpu_set_of(sets, 0), "0-2,8");
  EXPECT_EQ(cpu_set_of(sets, 1), "");
  EXPECT_EQ(cpu_set_of(sets, 2), "4");
  EXPECT_EQ(cpu_set_of(sets, 3), "");
}

}  // namespace
}  // namespace assay
