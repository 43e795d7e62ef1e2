#include "harness/device/cpu/topology.h"

#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace assay::cpu {
namespace {

// Two L3 caches of 32 MiB, each shared by two CPUs; one L2 and L1 per CPU.
Topology two_dies() {
  Topology topology;
  for (int cpu = 0; cpu < 4; ++cpu) {
    topology.caches.push_back({1, "data", 32768, 64, {cpu}});
    topology.caches.push_back({1, "instruction", 65536, 64, {cpu}});
    topology.caches.push_back({2, "unified", 1 << 20, 64, {cpu}});
  }
  topology.caches.push_back({3, "unified", 32 << 20, 64, {0, 1}});
  topology.caches.push_back({3, "unified", 32 << 20, 64, {2, 3}});
  return topology;
}

TEST(Topology, LastLevelCachesAreCountedOncePerInstance) {
  const Topology topology = two_dies();
  EXPECT_EQ(topology.last_level_cache_bytes({0}), 32u << 20);
  EXPECT_EQ(topology.last_level_cache_bytes({0, 1}), 32u << 20);
  EXPECT_EQ(topology.last_level_cache_bytes({1, 2}), 64u << 20);
  EXPECT_EQ(topology.cache_bytes(1, 3), 32768u);
  EXPECT_EQ(topology.cache_bytes(2, 3), 1u << 20);
  EXPECT_EQ(topology.cache_bytes(4, 3), 0u);
}

TEST(Topology, HiddenCachesAreAssumedToExist) { EXPECT_GT(Topology{}.last_level_cache_bytes({0}), 0u); }

TEST(Topology, ThisMachine) {
  const Topology& here = topology();
  EXPECT_GE(here.packages, 1);
  EXPECT_FALSE(here.numa_nodes.empty());
  std::set<int> cpus;
  for (const Core& core : here.cores) cpus.insert(core.cpus.begin(), core.cpus.end());
  for (const int cpu : rank_cpus()) EXPECT_TRUE(cpus.contains(cpu)) << cpu;
  EXPECT_GE(here.last_level_cache_bytes(rank_cpus()), here.last_level_cache_bytes({rank_cpus().front()}));
}

TEST(CpuList, RangesAndNumbers) {
  EXPECT_EQ(cpu_list("0-2,8,10-11"), (std::vector<int>{0, 1, 2, 8, 10, 11}));
  for (const char* none : {"", "all", "0-99999999999", "0-9999999"}) EXPECT_TRUE(cpu_list(none).empty()) << none;
  EXPECT_EQ(cpu_list("3,x,4"), (std::vector<int>{3, 4}));
  EXPECT_EQ(cpu_list_text({8, 0, 2, 1, 11, 10, 8}), "0-2,8,10-11");
  EXPECT_EQ(cpu_list_text({}), "");
}

TEST(Processor, KnowsThisOne) {
  EXPECT_FALSE(processor().architecture.empty());
  EXPECT_FALSE(processor().name().empty());
}

TEST(Processor, NamesTheMicroarchitectureElseTheBrand) {
  Processor processor;
  processor.architecture = "x86_64";
  processor.vendor = "Intel";
  processor.brand = "Xeon";
  processor.microarchitecture = "Ice Lake-SP";
  EXPECT_EQ(processor.name(), "Intel Ice Lake-SP");
  processor.microarchitecture.clear();
  EXPECT_EQ(processor.name(), "Xeon");
  processor.brand.clear();
  EXPECT_EQ(processor.name(), "Intel x86_64 processor");
}

TEST(InstructionSets, NamesThoseThatAreSet) {
  InstructionSets sets;
  EXPECT_TRUE(sets.names().empty());
  sets.fma = sets.avx512_bf16 = sets.amx_tile = true;
  EXPECT_THAT(sets.names(), testing::ElementsAre("fma", "avx512_bf16", "amx_tile"));
}

#if defined(__x86_64__)
// The compiler's runtime reads the same leaves with its own code.
TEST(InstructionSets, AgreeWithTheCompiler) {
  EXPECT_EQ(instruction_sets().avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(instruction_sets().fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(instruction_sets().avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(instruction_sets().avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(instruction_sets().avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0);
}
#endif

}  // namespace
}  // namespace assay::cpu
