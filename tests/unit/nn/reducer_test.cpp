// The reducer's thread: order, waiting, failures.
#include "workloads/nn/reducer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <vector>

namespace assay::nn {
namespace {

TEST(Reducer, RunsJobsInOrderOnItsOwnThread) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Reducer reducer(*comm, *device);
  std::vector<int> order;
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i)
    reducer.submit([&order, i, here](Communicator&, Stream&) {
      EXPECT_NE(std::this_thread::get_id(), here);
      order.push_back(i);
    });
  reducer.wait();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_GT(reducer.wall_seconds(), 0.0);
}

TEST(Reducer, CountsTheCpuThatJobsTake) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Reducer reducer(*comm, *device);
  reducer.submit([](Communicator&, Stream&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  reducer.wait();
  EXPECT_GE(reducer.wall_seconds(), 0.019);
  EXPECT_LT(reducer.cpu_seconds(), reducer.wall_seconds());
}

TEST(Reducer, ThrowsWhatAJobThrew) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Reducer reducer(*comm, *device);
  bool later = false;
  reducer.submit([](Communicator&, Stream&) { throw std::runtime_error("lost a rank"); });
  reducer.submit([&](Communicator&, Stream&) { later = true; });
  EXPECT_THROW(reducer.wait(), std::runtime_error);
  EXPECT_FALSE(later);
}

TEST(Reducer, EndsWithJobsPending) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Reducer reducer(*comm, *device);
  for (int i = 0; i < 10; ++i)
    reducer.submit([](Communicator&, Stream&) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
}

}  // namespace
}  // namespace assay::nn
