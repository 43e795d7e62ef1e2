// Handing tasks over: each is answered once and in order, whichever way the threads wait.
#include "suites/launch/handoff.h"

#include <gtest/gtest.h>

#include <thread>

namespace assay::launch {
namespace {

template <typename Handoff>
class Handoffs : public testing::Test {};
using Kinds = testing::Types<SpinHandoff, BlockHandoff>;
TYPED_TEST_SUITE(Handoffs, Kinds);

TYPED_TEST(Handoffs, EveryTaskIsAnsweredOnceInOrder) {
  constexpr std::uint64_t tasks = 200;
  TypeParam handoff;
  std::uint64_t out_of_order = 0;
  std::thread answerer([&] {
    for (std::uint64_t task = 1; task <= tasks; ++task) out_of_order += handoff.answer_next() != task;
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t task = 1; task <= tasks; ++task) wrong += handoff.send(task) != answer_of(task);
  answerer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(out_of_order, 0u);
}

}  // namespace
}  // namespace assay::launch
