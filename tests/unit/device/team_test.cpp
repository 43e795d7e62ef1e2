#include "harness/device/cpu/team.h"

#include "harness/core/error.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

// ThreadSanitizer does not understand libgomp's barriers and reports all of them: use one thread only.
#if defined(__SANITIZE_THREAD__)
constexpr bool openmp_can_be_tested = false;
#else
constexpr bool openmp_can_be_tested = true;
#endif

namespace assay::cpu {
namespace {

// The CPUs that the calling thread may use.
std::set<int> allowed() {
  cpu_set_t mask;
  sched_getaffinity(0, sizeof mask, &mask);
  std::set<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
  return cpus;
}

std::set<int> all() { return {rank_cpus().begin(), rank_cpus().end()}; }

int max_threads() { return openmp_can_be_tested ? static_cast<int>(rank_cpus().size()) : 1; }

TEST(RankCpus, CoresComeFirstAndNoneTwice) {
  EXPECT_EQ(all().size(), rank_cpus().size());
  EXPECT_GE(rank_cores(), 1);
  EXPECT_LE(rank_cores(), static_cast<int>(rank_cpus().size()));
}

TEST(Team, RunsEveryThreadOnItsOwnCpu) {
  const Team team(max_threads());
  std::vector<std::set<int>> cpus(static_cast<std::size_t>(team.size()));
  team.run([&](int thread) { cpus[static_cast<std::size_t>(thread)] = allowed(); });
  for (std::size_t i = 0; i < cpus.size(); ++i) EXPECT_THAT(cpus[i], testing::ElementsAre(rank_cpus()[i]));
}

TEST(Team, AlternatesWithAnother) {
  const Team one(1), many(max_threads());
  for (int turn = 0; turn < 50; ++turn) {
    int calls = 0;
    one.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
    std::vector<int> seen(static_cast<std::size_t>(many.size()));
    many.run([&](int thread) { seen[static_cast<std::size_t>(thread)] = 1; });
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_EQ(omp_get_max_threads(), many.size());
  }
}

// A library's own parallel region runs on the bound threads, as many as the team has.
TEST(Team, LibrariesInheritSizeAndBinding) {
  const Team team(max_threads());
  std::vector<std::set<int>> cpus(static_cast<std::size_t>(team.size()));
  int threads = 0;
#pragma omp parallel if (openmp_can_be_tested)
  {
#pragma omp single
    threads = omp_get_num_threads();
    cpus[static_cast<std::size_t>(omp_get_thread_num())] = allowed();
  }
  EXPECT_EQ(threads, team.size());
  for (std::size_t i = 0; i < cpus.size(); ++i) EXPECT_THAT(cpus[i], testing::ElementsAre(rank_cpus()[i]));
}

TEST(Team, UnbindsItsThreadAtTheEnd) {
  {
    const Team outer(1);
    { const Team inner(max_threads()); }
    EXPECT_EQ(allowed().size(), 1u) << "the outer team still exists";
  }
  EXPECT_EQ(allowed(), all());
}

TEST(Team, OtherThreadsUnbindThemselves) {
  const Team team(1);
  std::set<int> inherited, freed;
  std::thread([&] {
    inherited = allowed();
    bind_this_thread(rank_cpus());
    freed = allowed();
  }).join();
  EXPECT_EQ(inherited.size(), 1u);
  EXPECT_EQ(freed, all());
}

TEST(Team, RethrowsAnException) {
  const Team team(max_threads());
  EXPECT_THROW(team.run([&](int thread) {
    if (thread == team.size() - 1) throw std::domain_error("broken");
  }),
               std::domain_error);
  int calls = 0;
  team.run([&](int thread) {
    if (thread == 0) ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(Team, RefusesMoreThreadsThanCpus) {
  EXPECT_THROW(Team(static_cast<int>(rank_cpus().size()) + 1), UsageError);
  EXPECT_THROW(Team(0), UsageError);
}

TEST(ResolveThreads, AllStopsAtTheQuotaOfTheGroup) {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
  };
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cgroup.controllers", "cpu\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(resolve_threads("all", folder.path()), 1);
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(resolve_threads("all", folder.path()), rank_cores());
}

TEST(ResolveThreads, WordsAndNumbers) {
  const int cpus = static_cast<int>(rank_cpus().size());
  EXPECT_EQ(resolve_threads("core"), 1);
  EXPECT_EQ(resolve_threads("1"), 1);
  EXPECT_EQ(resolve_threads("cpus"), cpus);
  EXPECT_EQ(resolve_threads(std::to_string(cpus)), cpus);
  EXPECT_GE(resolve_threads("all"), 1);
  EXPECT_LE(resolve_threads("all"), rank_cores());
  EXPECT_GE(resolve_threads("node"), 1);
  EXPECT_LE(resolve_threads("node"), rank_cores());
  for (const std::string bad : {"0", "-1", "2x", "", "half", "99999"})
    EXPECT_THROW(resolve_threads(bad), UsageError) << bad;
}

// The launcher's choice overrides the mask; tested in another process, since rank_cpus() caches its result.
TEST(RankCpusDeathTest, TheLauncherChooses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int last = *allowed().rbegin();
  EXPECT_EXIT(
      {
        setenv("ASSAY_CPUS", std::to_string(last).c_str(), 1);
        const bool only = rank_cpus() == std::vector<int>{last} && rank_cores() == 1;
        _exit(only ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Whether each thread of a library's parallel region runs on its own CPU, also after smaller regions.
bool regions_keep_their_cpus(int most) {
  bool right = true;
  for (const int threads : {most, 1, std::min(2, most), most}) {
#pragma omp parallel num_threads(threads)
    {
      const int thread = omp_get_thread_num();
      if (omp_get_place_num() != thread || allowed() != std::set<int>{rank_cpus()[static_cast<std::size_t>(thread)]}) {
#pragma omp atomic write
        right = false;
      }
    }
  }
  return right;
}

// In another process, which restarts on its places.
TEST(RestartOnDeathTest, ThreadsThatOpenMPReplacesKeepTheirCpu) {
  if (!openmp_can_be_tested) GTEST_SKIP() << "ThreadSanitizer";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        restart_on(rank_cpus());
        const bool free = allowed() == all() && omp_get_num_places() == static_cast<int>(rank_cpus().size());
        const Team team(max_threads());
        _exit(free && regions_keep_their_cpus(team.size()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace assay::cpu
