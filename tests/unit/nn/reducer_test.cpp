// The reducer's thread: order, waiting, failures, shutdown.
#include "workloads/nn/reducer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
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

TEST(Reducer, CountsTheCpuTimeOfJobs) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Reducer reducer(*comm, *device);
  reducer.submit([](Communicator&, Stream&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  reducer.wait();
  EXPECT_GE(reducer.wall_seconds(), 0.019);
  EXPECT_LT(reducer.cpu_seconds(), reducer.wall_seconds());
}

TEST(Reducer, RethrowsTheExceptionOfAJob) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Reducer reducer(*comm, *device);
  bool later = false;
  reducer.submit([](Communicator&, Stream&) { throw std::runtime_error("lost a rank"); });
  reducer.submit([&](Communicator&, Stream&) { later = true; });
  EXPECT_THROW(reducer.wait(), std::runtime_error);
  EXPECT_FALSE(later);
}

TEST(Reducer, DestructorWaitsForTheRunningJobAndDropsTheRest) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  std::promise<void> started, release;
  bool ended = false;
  int later = 0;
  auto reducer = std::make_unique<Reducer>(*comm, *device);
  reducer->submit([&](Communicator&, Stream&) {
    started.set_value();
    release.get_future().wait();
    ended = true;
  });
  for (int i = 0; i < 10; ++i) reducer->submit([&](Communicator&, Stream&) { ++later; });
  started.get_future().wait();
  std::thread releasing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the destructor drops the rest meanwhile
    release.set_value();
  });
  reducer.reset();
  releasing.join();
  EXPECT_TRUE(ended);
  EXPECT_EQ(later, 0);
}

}  // namespace
}  // namespace assay::nn
