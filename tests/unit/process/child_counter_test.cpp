// Counters of what children do.
#include "harness/process/child_counter.h"

#include "harness/process/run.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ChildCounterTest, CountsChildrenAndTheirChildrenOnly) {
  std::string why;
  const auto counter = ChildCounter::start(ChildCounter::What::nanoseconds, &why);
  if (!counter) GTEST_SKIP() << why;
  volatile double own = 0;
  for (int i = 0; i < 20'000'000; ++i) own = own + 1;
  const double before = counter->count().value();
  EXPECT_LT(before, 1e6) << "this thread's own work is left out";
  ProcessRun run;
  run.process = {.words = {"/bin/sh", "-c", "(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done)"}, .variables = {}};
  run_process(run);
  EXPECT_GT(counter->count().value(), before + 1e6);
}

TEST(ChildCounterTest, SaysWhyThereIsNone) {
  std::string why;
  const bool counts = ChildCounter::start(ChildCounter::What::instructions, &why).has_value();
  EXPECT_EQ(why.empty(), counts) << why;
}

}  // namespace
}  // namespace assay
