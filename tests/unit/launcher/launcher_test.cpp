// How processes ended.
#include "harness/launch/process.h"

#include <gtest/gtest.h>

#include <csignal>

namespace assay {
namespace {

TEST(DescribeStatus, SignalsAndCodes) {
  EXPECT_EQ(describe_status(SIGSEGV, false), "killed by SIGSEGV (signal 11)");
  EXPECT_EQ(describe_status(3 << 8, false), "ended with code 3");
  EXPECT_EQ(describe_status(137 << 8, true), "killed by SIGKILL (signal 9)");
  EXPECT_EQ(describe_status(0, true), "");
}

}  // namespace
}  // namespace assay
