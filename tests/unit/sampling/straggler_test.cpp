// Stragglers are named, healthy ranks are not; a slow link delays only what crosses it.
#include "harness/sampling/straggler.h"
#include "harness/comm/slow_link.h"

#include "harness/device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <vector>

namespace assay {
namespace {

TEST(Straggler, IsMoreThanHalfSlowerThanTheOthers) {
  const auto found = find_straggler(std::vector<double>{1.0, 1.1, 2.1, 0.9});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_NEAR(found->ratio, 2.1, 1e-9);
  EXPECT_EQ(find_straggler(std::vector<double>{1.0, 2.0})->rank, 1);
}

TEST(Straggler, HealthyRanksHaveNone) {
  EXPECT_FALSE(find_straggler(std::vector<double>{1.0, 1.4}));
  EXPECT_FALSE(find_straggler(std::vector<double>{1.0}));
  EXPECT_FALSE(find_straggler(std::vector<double>{1.0, 0.0}));    // not known
  EXPECT_FALSE(find_straggler(std::vector<double>{1e-6, 5e-6}));  // below 10 us: arrival
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(SlowLink, DelaysOnlyWhatCrossesIt) {
  const auto device = cpu::make_cpu_device();
  const auto inner = make_self_communicator();
  int used = 0;
  SlowLink link(*inner, *device, [&] { ++used; });
  const auto stream = device->make_stream();
  EXPECT_EQ(link.max_of(3), 3);
  link.barrier();
  EXPECT_EQ(used, 0);
  std::vector<float> data(1 << 18, 1);  // 1 MiB, 8.4 ms
  EXPECT_GE(seconds_of([&] { link.broadcast(data.data(), data.data(), data.size(), DType::f32, 0, *stream); }), 8e-3);
  EXPECT_GE(seconds_of([&] {
              link.group(
                  [&] {
                    link.send(data.data(), data.size(), DType::f32, 0, *stream);
                    link.receive(data.data(), data.size(), DType::f32, 0, *stream);
                  },
                  *stream);
            }),
            8e-3);
  EXPECT_EQ(used, 1);
  EXPECT_GE(
      seconds_of([&] { link.split(0, 0)->broadcast(data.data(), data.data(), data.size(), DType::f32, 0, *stream); }),
      8e-3);
}

}  // namespace
}  // namespace assay
