// This machine's GPU, or the emulated one, as a Device: memory, order between streams, graphs and why work cannot be
// captured.
#include "harness/core/error.h"
#include "tests/support/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace assay {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::ThrowsMessage;

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = test::device_of(DeviceKind::cuda, why_not);
    if (!device_) GTEST_SKIP() << why_not;
    stream_ = device_->make_stream();
  }

  Buffer put(const std::vector<int>& values) {
    Buffer buffer = device_->allocate(values.size() * sizeof(int));
    device_->copy(buffer.data(), values.data(), buffer.bytes(), *stream_);
    stream_->synchronize();
    return buffer;
  }
  std::vector<int> get(const Buffer& buffer) {
    std::vector<int> values(buffer.bytes() / sizeof(int));
    device_->copy(values.data(), buffer.data(), buffer.bytes(), *stream_);
    stream_->synchronize();
    return values;
  }
  void copy(const Buffer& to, const Buffer& from, Stream& stream) {
    device_->copy(to.data(), from.data(), from.bytes(), stream);
  }
  // Why `body` cannot be captured.
  std::string refusal(const std::function<void()>& body) {
    std::string why_not;
    EXPECT_EQ(device_->capture(*stream_, body, why_not), nullptr);
    return why_not;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(CudaDevice, KnowsItself) {
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(info.kind, DeviceKind::cuda);
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.emulated, info.name == "emulated GPU (not a measurement)");
  EXPECT_THAT(info.uuid, MatchesRegex("GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
  EXPECT_THAT(info.pci, MatchesRegex("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}.0"));
  EXPECT_THAT(info.software, MatchesRegex("CUDA [0-9.]+, driver .*[0-9.]+"));
  EXPECT_GT(info.memory_bytes, 0u);
  EXPECT_GT(info.last_level_cache_bytes, 0u);
  EXPECT_GT(info.compute_units, 0);
  EXPECT_GE(info.compute_capability, 80);
  EXPECT_EQ(device_->timer(), "cuda_event");
  EXPECT_GE(device_->shortest_sample(), 5e-3);
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaDevice, CopiesBetweenAllKindsOfMemory) {
  const std::vector<int> values = {1, 2, 3, 4, 5, 6, 7};
  const Buffer there = put(values), back = device_->allocate(there.bytes());
  const Buffer pinned = device_->allocate(there.bytes(), Memory::pinned);
  const Buffer host = device_->allocate(there.bytes(), Memory::host);
  copy(back, there, *stream_);
  copy(pinned, back, *stream_);
  copy(host, pinned, *stream_);
  stream_->synchronize();
  EXPECT_EQ(std::memcmp(host.data(), values.data(), host.bytes()), 0);
  device_->zero(back.data(), back.bytes(), *stream_);
  EXPECT_THAT(get(back), Each(0));
  device_->copy(back.data(), there.data(), 0, *stream_);
  device_->zero(back.data(), 0, *stream_);
  EXPECT_EQ(device_->allocate(0).data(), nullptr);
}

TEST_F(CudaDevice, OutOfMemoryNamesTheBytes) {
  const std::size_t huge = std::size_t{1} << 50;
  EXPECT_THAT([&] { device_->allocate(huge); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("out of device memory"), HasSubstr(std::to_string(huge)), HasSubstr(" free of "))));
  EXPECT_THAT(get(put({4})), Each(4)) << "the device still works";
}

TEST_F(CudaDevice, StreamsWaitForEvents) {
  const auto other = device_->make_stream();
  const auto start = device_->make_event(), done = device_->make_event();
  const Buffer a = put({1, 2}), b = put({0, 0}), c = put({0, 0});
  start->record(*stream_);
  copy(b, a, *stream_);
  done->record(*stream_);
  other->wait(*done);
  copy(c, b, *other);
  other->synchronize();
  EXPECT_EQ(get(c), get(a));
  done->synchronize();
  EXPECT_GE(done->seconds_since(*start), 0);
}

TEST_F(CudaDevice, AGraphRunsWhenItIsLaunched) {
  const Buffer a = put({1, 2}), b = put({0, 0});
  std::string why_not;
  const auto graph = device_->capture(
      *stream_, [&] { copy(b, a, *stream_); }, why_not);
  ASSERT_TRUE(graph) << why_not;
  EXPECT_THAT(get(b), Each(0));
  for (const int value : {3, 4}) {
    const std::vector<int> values(2, value);
    device_->copy(a.data(), values.data(), a.bytes(), *stream_);
    graph->launch(*stream_);
    EXPECT_THAT(get(b), Each(value));
  }
}

TEST_F(CudaDevice, AGraphHoldsStreamsThatForkAndJoin) {
  const auto side = device_->make_stream();
  const auto fork = device_->make_event(), join = device_->make_event();
  const Buffer a = put({1, 2}), b = put({0, 0}), c = put({0, 0});
  std::string why_not;
  const auto graph = device_->capture(
      *stream_,
      [&] {
        copy(b, a, *stream_);
        fork->record(*stream_);
        side->wait(*fork);
        copy(c, b, *side);
        join->record(*side);
        stream_->wait(*join);
      },
      why_not);
  ASSERT_TRUE(graph) << why_not;
  EXPECT_THAT(get(c), Each(0));
  graph->launch(*stream_);
  EXPECT_EQ(get(c), get(a));
}

TEST_F(CudaDevice, ReportsWhyWorkCannotBeCaptured) {
  const Buffer a = put({1, 2}), b = put({0, 0});
  const auto side = device_->make_stream();
  const auto fork = device_->make_event();
  EXPECT_THAT(refusal([&] { stream_->synchronize(); }), HasSubstr("captur"));
  EXPECT_THAT(refusal([&] { device_->allocate(1 << 20); }), HasSubstr("captur"));
  EXPECT_EQ(refusal([&] {
              copy(b, a, *stream_);
              throw Error("no graph of mine");
            }),
            "no graph of mine");
  EXPECT_THAT(refusal([&] {
                fork->record(*stream_);
                side->wait(*fork);
                copy(b, a, *side);
              }),
              HasSubstr("unjoined"));
  // None of it ran, and the stream is unchanged.
  EXPECT_THAT(get(b), Each(0));
  copy(b, a, *stream_);
  EXPECT_EQ(get(b), get(a));
  EXPECT_FALSE(device_->lost());
}

TEST_F(CudaDevice, AGateDelaysLaterWork) {
  const Buffer a = put({5, 6}), b = put({0, 0});
  for (int turn = 0; turn < 3; ++turn) {
    device_->close_gate(*stream_);
    copy(b, a, *stream_);
    device_->open_gate();
    EXPECT_EQ(get(b), get(a));
    EXPECT_FALSE(device_->gate_timed_out());
    device_->zero(b.data(), b.bytes(), *stream_);
  }
  device_->evict(*stream_, {});
  EXPECT_THAT(get(b), Each(0));
}

TEST_F(CudaDevice, AGateThatIsNotOpenedOpensByItself) {
  if (device_->info().emulated) GTEST_SKIP() << "inline streams do not wait for a gate";
  device_->close_gate(*stream_);
  stream_->synchronize();
  EXPECT_TRUE(device_->gate_timed_out());
  device_->close_gate(*stream_);
  device_->open_gate();
  stream_->synchronize();
  EXPECT_FALSE(device_->gate_timed_out());
}

TEST_F(CudaDevice, OtherThreadsUseTheSameGpu) {
  std::vector<int> seen;
  std::thread([&] {
    const auto own = device_->make_stream();
    const Buffer a = put({7, 8}), b = device_->allocate(a.bytes());
    copy(b, a, *own);
    own->synchronize();
    seen = get(b);
  }).join();
  EXPECT_EQ(seen, (std::vector<int>{7, 8}));
}

TEST_F(CudaDevice, MoreRanksThanGpusAreNamed) {
  EXPECT_THAT([] { make_device(DeviceKind::cuda, 1000); },
              ThrowsMessage<Error>(AllOf(HasSubstr("local rank 1000 has no GPU"), HasSubstr("--share-gpu"))));
}

}  // namespace
}  // namespace assay
