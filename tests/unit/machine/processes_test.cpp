#include "harness/machine/processes.h"

#include "tests/unit/machine/fake_root.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;

void add(FakeRoot& fake, int pid, int parent, const std::string& name, int ticks = 0, int children = 0) {
  fake.file(fmt::format("proc/{}/stat", pid),
            fmt::format("{} ({}) R {} 1 1 0 -1 0 0 0 0 0 {} 2 {} 1 20 0 1 0 99", pid, name, parent, ticks, children));
}

TEST(Processes, NamesMayContainSpacesAndParentheses) {
  FakeRoot fake;
  add(fake, 7, 3, "a (b) c", 40, 5);
  const auto process = read_process(fake.root(), 7);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->name, "a (b) c");
  EXPECT_EQ(process->parent, 3);
  EXPECT_EQ(process->ticks, 42);
  EXPECT_EQ(process->children, 6);
  EXPECT_FALSE(process->kernel);
  EXPECT_FALSE(read_process(fake.root(), 8));
  fake.file("proc/9/stat", "9 (torn");
  EXPECT_FALSE(read_process(fake.root(), 9));
}

// A shell started assay, which started mpirun, which started two ranks; the second has a child. The shell's other child
// and another run are not part of it.
TEST(Processes, ARunReachesUpToAssayThroughLaunchersAndDownToAll) {
  FakeRoot fake;
  add(fake, 1, 0, "init");
  add(fake, 10, 1, "bash");
  add(fake, 11, 10, "assay");
  add(fake, 12, 11, "mpirun");
  add(fake, 20, 12, "assay");
  add(fake, 21, 12, "assay");
  add(fake, 5, 21, "helper");  // numbers wrap around
  add(fake, 30, 10, "stress");
  add(fake, 40, 1, "assay");
  fake.link("proc/self", "20");
  const auto run = run_of_this_process(fake.root(), read_processes(fake.root()));
  EXPECT_THAT(run, ElementsAre(5, 11, 12, 20, 21));
}

}  // namespace
}  // namespace assay
