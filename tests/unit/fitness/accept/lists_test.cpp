// What an acceptance leaves for schedulers.
#include "harness/fitness/accept/lists.h"

#include "harness/core/files.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::accept {
namespace {

using testing::HasSubstr;

TEST(AcceptLists, HostileNamesAndTextsAreNoCommands) {
  fitness::Acceptance table;
  for (const char* name : {"n1", "n2;reboot", "$(reboot)", "n3\nreboot", "-n4"}) {
    fitness::AcceptedHost& host = table.hosts.emplace_back();
    host.host = name;
    host.checks["host"].note(Fitness::fail, "slow");
    host.checks["host"].blame("disk", "sda'; reboot #\n`reboot`");
  }
  const test::TemporaryFolder folder;
  write_lists(table, folder.path());
  EXPECT_EQ(read_whole(folder.path() / failed_file, 1000), "n1\n");
  EXPECT_EQ(table.notes.size(), 4U);
  const std::string script = drain_script(table);
  EXPECT_THAT(script, HasSubstr("each 'n1' 'assay: disk sda'\\''; reboot #"));
  EXPECT_EQ(script.find("\nreboot"), script.npos);
  EXPECT_EQ(script.find("n2"), script.npos);
}

}  // namespace
}  // namespace assay::accept
