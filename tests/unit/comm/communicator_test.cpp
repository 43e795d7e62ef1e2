// The communicators that need no launcher: self, and ranks as threads.
#include "harness/comm/bf16_reduce.h"
#include "harness/core/error.h"
#include "tests/support/communicator_contract.h"
#include "tests/support/thread_communicator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace assay {
namespace {

TEST(SelfCommunicator, KeepsTheContract) {
  const auto comm = make_self_communicator();
  EXPECT_EQ(comm->size(), 1);
  test::expect_contract(*comm, 1000);
}

TEST(SelfCommunicator, UnmatchedOrForeignMessagesAreErrors) {
  const auto comm = make_self_communicator();
  InlineStream stream;
  float x = 1;
  EXPECT_THROW(comm->send(&x, 1, DType::f32, 0, stream), Error);
  EXPECT_THROW(comm->group([&] { comm->send(&x, 1, DType::f32, 0, stream); }, stream), Error);
  EXPECT_THROW(comm->group([&] { comm->send(&x, 1, DType::f32, 1, stream); }, stream), Error);
  EXPECT_THROW(comm->broadcast(&x, &x, 1, DType::f32, 1, stream), Error);
  // A failed group leaves nothing behind.
  float y = 0;
  comm->group([&] { comm->send(&x, 1, DType::f32, 0, stream), comm->receive(&y, 1, DType::f32, 0, stream); }, stream);
  EXPECT_EQ(y, 1);
}

TEST(ThreadCommunicator, KeepsTheContract) {
  for (const int ranks : {1, 2, 5})
    test::run_ranks(ranks, [](Communicator& comm) { test::expect_contract(comm, 100); });
}

TEST(ReduceBf16, RoundsToNearestEvenAndKeepsNaN) {
  const auto reduce = [](ReduceOp op, float a, float b) {
    std::vector<bf16> in(70, bf16(a)), out(70, bf16(b));
    reduce_bf16(op, in.data(), out.data(), in.size());
    for (const bf16& x : out) EXPECT_EQ(x.bits, out[0].bits);
    return static_cast<float>(out[0]);
  };
  EXPECT_EQ(reduce(ReduceOp::sum, 100, 28), 128);
  EXPECT_EQ(reduce(ReduceOp::sum, 256, 1), 256);  // 257 is halfway: to even
  EXPECT_EQ(reduce(ReduceOp::sum, 256, 3), 260);  // 259 is halfway: to even
  EXPECT_EQ(reduce(ReduceOp::max, -3, 2), 2);
  EXPECT_EQ(reduce(ReduceOp::min, -3, 2), -3);
  EXPECT_TRUE(std::isnan(reduce(ReduceOp::sum, std::numeric_limits<float>::quiet_NaN(), 1)));
  EXPECT_TRUE(std::isinf(reduce(ReduceOp::sum, std::numeric_limits<float>::infinity(), 1)));
}

}  // namespace
}  // namespace assay
