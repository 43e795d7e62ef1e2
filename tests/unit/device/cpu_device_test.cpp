#include "harness/device/cpu/cpu_device.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

// Sanitizers map far more address space than the limit under test.
#ifdef ASSAY_SANITIZED
constexpr bool address_space_can_be_limited = false;
#else
constexpr bool address_space_can_be_limited = true;
#endif

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(DeviceKind, NamesRoundTrip) {
  EXPECT_EQ(device_kind_from("cpu"), DeviceKind::cpu);
  EXPECT_EQ(device_kind_from("cuda"), DeviceKind::cuda);
  EXPECT_EQ(device_kind_from("gpu"), std::nullopt);
  EXPECT_EQ(name_of(DeviceKind::cuda), "cuda");
}

TEST(ModuleLoad, SaysWhichModuleIsMissing) {
  EXPECT_THAT([] { Module::load("absent"); }, ThrowsMessage<Error>(HasSubstr("libassay-absent.so")));
}

class CpuDeviceTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device = make_device(DeviceKind::cpu, 0);
};

TEST_F(CpuDeviceTest, KnowsItself) {
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.kind, DeviceKind::cpu);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_GT(info.last_level_cache_bytes, 0u);
  EXPECT_EQ(info.compute_units, static_cast<int>(cpu::rank_cpus().size()));
  EXPECT_EQ(device->timer(), "steady_clock");
  EXPECT_GT(device->timer_cost(), 0);
  EXPECT_GE(device->shortest_sample(), 1000 * device->timer_cost());
  EXPECT_GE(device->shortest_sample(), 100e-6);
}

TEST_F(CpuDeviceTest, MemoryIsAligned) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4097}, (std::size_t{2} << 20), (std::size_t{5} << 20) + 1}) {
    const Buffer buffer = device->allocate(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    const std::size_t alignment = bytes >= (std::size_t{2} << 20) ? std::size_t{2} << 20 : 64;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment, 0u) << bytes;
    std::memset(buffer.data(), 1, bytes);
  }
  EXPECT_EQ(device->allocate(0).data(), nullptr);
}

TEST_F(CpuDeviceTest, BuffersAreMovable) {
  Buffer a = device->allocate(100);
  void* data = a.data();
  Buffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  b = device->allocate(200);
  EXPECT_EQ(b.bytes(), 200u);
}

TEST_F(CpuDeviceTest, RejectsMoreMemoryThanAvailable) {
  const std::size_t huge = std::size_t{1} << 45;
  EXPECT_THAT([&] { device->allocate(huge); },
              ThrowsMessage<Error>(AllOf(HasSubstr(std::to_string(huge)), HasSubstr("available"))));
}

TEST_F(CpuDeviceTest, RespectsALimitOnTheAddressSpace) {
  if (!address_space_can_be_limited) GTEST_SKIP() << "a sanitizer needs the address space";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto limited_process = [] {
    const rlimit limit{std::size_t{4} << 30, std::size_t{4} << 30};
    setrlimit(RLIMIT_AS, &limit);
    const auto limited = make_device(DeviceKind::cpu, 0);
    bool refused = false;
    try {
      limited->allocate(std::size_t{5} << 30);
    } catch (const Error&) {
      refused = true;
    }
    _exit(refused && limited->info().memory_bytes <= limit.rlim_cur ? 0 : 1);
  };
  EXPECT_EXIT(limited_process(), testing::ExitedWithCode(0), "");
}

TEST_F(CpuDeviceTest, EventsCountSeconds) {
  const auto stream = device->make_stream();
  const auto start = device->make_event(), stop = device->make_event();
  start->record(*stream);
  stop->record(*stream);
  EXPECT_GE(stop->seconds_since(*start), 0);
  EXPECT_LE(start->seconds_since(*stop), 0);
}

TEST_F(CpuDeviceTest, CopiesAndEvicts) {
  const auto stream = device->make_stream();
  const Buffer from = device->allocate(1000), to = device->allocate(1000);
  std::memset(from.data(), 7, 1000);
  device->copy(to.data(), from.data(), 1000, *stream);
  const cpu::Team team(1);  // one thread evicts, which sanitizers can follow
  // From within a line to within another, and nothing.
  const MemoryRange ranges[] = {memory_range(to.as<char>() + 1, 998), memory_range(from.data(), 0)};
  device->evict(*stream, ranges);
  device->evict(*stream, {});
  EXPECT_EQ(std::memcmp(from.data(), to.data(), 1000), 0);
}

}  // namespace
}  // namespace assay
