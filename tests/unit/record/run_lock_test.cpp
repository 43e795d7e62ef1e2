// One supervisor per directory: by the kernel's lock on one host, by the content of the lock file between hosts.
#include "harness/record/run_lock.h"

#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class RunLockTest : public testing::Test {
 protected:
  std::string text() const {
    std::ifstream file(dir_ / ".lock");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& content, int seconds_old) const {
    std::ofstream(dir_ / ".lock") << content;
    timespec times[2] = {{0, UTIME_OMIT}, {::time(nullptr) - seconds_old, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir_ / ".lock").c_str(), times, 0), 0);
  }
  std::string refusal() const {
    return test::refusal([&] { const RunLock lock(dir_); });
  }

  test::TemporaryFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(RunLockTest, NamesItsHolderAndIsReleased) {
  {
    const RunLock lock(dir_);
    EXPECT_THAT(text(), HasSubstr(std::to_string(::getpid())));
    EXPECT_THAT(refusal(), AllOf(HasSubstr("in use"), HasSubstr(std::to_string(::getpid())), HasSubstr(" on ")));
  }
  EXPECT_EQ(text(), "");
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunLockTest, ARecentLockOfAnotherHostIsRespected) {
  write("77 far another-boot\n", 5);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("process 77 on far"), ContainsRegex("last heartbeat was [1-5]?[0-9] s ago")));
  EXPECT_THAT(text(), HasSubstr("77 far"));
}

TEST_F(RunLockTest, AnOldLockOfAnotherHostIsThatOfADeadRun) {
  write("77 far another-boot\n", 100);
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunLockTest, OnThisHostTheLockOfADeadProcessIsFree) {
  { const RunLock lock(dir_); }
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  boot >> id;
  write("77 here " + id + "\n", 0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunLockTest, NoOtherFileIsCreated) {
  write("77 far another-boot\n", 5);
  refusal();
  for (const auto& entry : fs::directory_iterator(dir_)) EXPECT_EQ(entry.path().filename(), ".lock");
}

}  // namespace
}  // namespace assay
