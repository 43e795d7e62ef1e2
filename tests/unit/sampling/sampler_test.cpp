#include "harness/sampling/sampler.h"

#include "harness/core/error.h"
#include "tests/unit/sampling/fake_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace assay {
namespace {

using test::FakeDevice;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// One rank on a fake device.
class SamplerTest : public testing::Test {
 protected:
  Sampler sampler() { return Sampler(device, *comm, protocol, device.clock()); }
  // Work that takes `seconds`, noting the slots it was called with.
  auto work(double seconds) {
    return [this, seconds](Stream&, int slot) {
      device.now += seconds;
      slots.push_back(slot);
    };
  }

  // 100 bytes a slot, which no device touches.
  static Sampler::Buffers buffers() {
    return [](int) { return std::vector{memory_range(nullptr, 100)}; };
  }

  FakeDevice device;
  std::unique_ptr<Communicator> comm = make_self_communicator();
  Protocol protocol;
  std::vector<int> slots;
};

TEST_F(SamplerTest, BatchesUntilASampleTakesTheShortestTime) {
  Sampler s = sampler();
  s.repeat({4, true}, work(1e-6));
  const Measurement& m = s.measurement();
  EXPECT_GE(m.repetitions, 100);
  EXPECT_LE(m.repetitions, 200);
  EXPECT_THAT(m.values, Each(testing::DoubleNear(1e-6, 1e-9)));
  EXPECT_EQ(m.stopped_by, StopReason::noise);
  EXPECT_GE(m.values.size(), 30u);
  EXPECT_EQ(m.at.size(), m.values.size());
  EXPECT_NEAR(m.summary.median, 1e-6, 1e-9);
}

TEST_F(SamplerTest, LongWorkIsNotBatched) {
  Sampler s = sampler();
  s.repeat({4, true}, work(2e-4));
  EXPECT_EQ(s.measurement().repetitions, 1);
}

TEST_F(SamplerTest, WorkThatTakesNoTimeEnds) {
  device.tick = 1e-5;
  protocol.max_samples = 3;
  protocol.warmup_seconds = 0;
  Sampler s = sampler();
  s.repeat({2, true}, [](Stream&, int) {});
  EXPECT_THAT(s.measurement().values, ElementsAre(0, 0, 0));
}

TEST_F(SamplerTest, IsolatedSamplesAreOneCallAndEvictedWhenCold) {
  protocol.batching = Protocol::Batching::isolated;
  device.evict_seconds = 0.25;  // outside the timed region, so that it must not show in the values
  Sampler s = sampler();
  s.repeat({4, true}, work(1e-6), buffers());
  const Measurement& m = s.measurement();
  EXPECT_EQ(m.repetitions, 1);
  EXPECT_EQ(slots.size(), m.first_touch.size() + m.values.size());
  EXPECT_EQ(static_cast<std::size_t>(device.evictions), slots.size());
  EXPECT_THAT(m.values, Each(testing::DoubleNear(1e-6, 1e-9)));
}

TEST_F(SamplerTest, IsolatedHotSamplesAreNotEvicted) {
  protocol.batching = Protocol::Batching::isolated;
  protocol.cache = Protocol::Cache::hot;
  Sampler s = sampler();
  s.repeat(work(1e-3));
  EXPECT_EQ(device.evictions, 0);
}

TEST_F(SamplerTest, ColdRotationNeedsNoEvictionAndNeverSkipsASlot) {
  Sampler s = sampler();
  s.repeat({7, true}, work(1e-5), buffers());
  EXPECT_EQ(device.evictions, 0);
  for (std::size_t i = 0; i < slots.size(); ++i) ASSERT_EQ(slots[i], static_cast<int>(i % 7)) << "call " << i;
}

// Too few slots to exceed the cache: each sample finds its own slots evicted, and uses none twice.
TEST_F(SamplerTest, AShortRotationIsEvictedBeforeEachSample) {
  device.evict_seconds = 0.25;
  protocol.max_samples = 20;
  std::vector<int> evicted;
  bool repeated = false;
  Sampler s = sampler();
  s.repeat(
      {7, false},
      [&](Stream& stream, int slot) {
        work(1e-6)(stream, slot);
        repeated |= std::erase(evicted, slot) != 1;
      },
      [&](int slot) {
        evicted.push_back(slot);
        return buffers()(slot);
      });
  const Measurement& m = s.measurement();
  EXPECT_EQ(m.repetitions, 7);
  EXPECT_FALSE(repeated) << "a slot was used without being evicted";
  EXPECT_TRUE(evicted.empty()) << "a slot was evicted that the sample did not use";
  EXPECT_EQ(device.evicted_bytes, 100 * slots.size());
  EXPECT_THAT(m.values, Each(testing::DoubleNear(1e-6, 1e-9)));
}

TEST_F(SamplerTest, ColdWithOneSlotIsOneEvictedCall) {
  Sampler s = sampler();
  s.repeat({1, false}, work(1e-3), buffers());
  EXPECT_EQ(s.measurement().repetitions, 1);
  EXPECT_EQ(static_cast<std::size_t>(device.evictions), slots.size());
}

TEST_F(SamplerTest, AColdCaseThatCannotBeEvictedIsRefused) {
  Sampler s = sampler();
  EXPECT_THROW(s.repeat(work(1e-3)), Error);
}

TEST_F(SamplerTest, HotStaysOnOneSlot) {
  protocol.cache = Protocol::Cache::hot;
  Sampler s = sampler();
  s.repeat({5, true}, work(1e-6));
  EXPECT_THAT(slots, Each(0));
  EXPECT_EQ(device.evictions, 0);
  EXPECT_GE(s.measurement().repetitions, 100);
}

TEST_F(SamplerTest, FirstTouchIsReportedSeparately) {
  Sampler s = sampler();
  int calls = 0;
  s.repeat({3, true}, [&](Stream&, int) { device.now += calls++ < 3 ? 0.01 : 1e-3; });
  const Measurement& m = s.measurement();
  ASSERT_EQ(m.first_touch.size(), 3u);
  EXPECT_THAT(m.first_touch, Each(testing::DoubleNear(0.01, 1e-9)));
  EXPECT_LT(*std::max_element(m.values.begin(), m.values.end()), 0.0011);
}

TEST_F(SamplerTest, WarmUpTakesItsTimeAndSamplesAreTimedFromTheCasesStart) {
  device.now = 5.0;  // the case has been setting up for 5 s
  protocol.warmup_seconds = 0.5;
  Sampler s = sampler();
  s.repeat({2, true}, work(0.01));
  const Measurement& m = s.measurement();
  EXPECT_GE(m.at.front(), 5.5);
  EXPECT_LE(m.at.front(), 5.55);
  EXPECT_TRUE(std::is_sorted(m.at.begin(), m.at.end()));
  EXPECT_NEAR(m.at[1] - m.at[0], 0.01, 1e-9);
  EXPECT_NEAR(m.window_seconds, 0.01 * static_cast<double>(m.values.size()), 1e-9);
}

TEST_F(SamplerTest, FirstTouchOfManySlowSlotsIsLimited) {
  protocol.max_seconds = 2.0;
  Sampler s = sampler();
  s.repeat({32, true}, work(0.2));
  EXPECT_LE(s.measurement().first_touch.size(), 3u);
}

TEST_F(SamplerTest, TimeLimitLeavesAtLeastOneSample) {
  protocol.max_seconds = 1e-9;
  protocol.warmup_seconds = 0;
  Sampler s = sampler();
  s.repeat({1, true}, work(1.0));
  EXPECT_THAT(s.measurement().values, ElementsAre(1.0));
  EXPECT_EQ(s.measurement().stopped_by, StopReason::time);
  EXPECT_FALSE(s.measurement().summary.ci95);
}

TEST_F(SamplerTest, CountLimit) {
  protocol.max_samples = 8;
  Sampler s = sampler();
  s.repeat({1, true}, work(1e-3));
  EXPECT_EQ(s.measurement().values.size(), 8u);
  EXPECT_EQ(s.measurement().stopped_by, StopReason::count);
}

// Work so short that three seconds of it would be millions of samples.
TEST_F(SamplerTest, SamplesAreBounded) {
  protocol.batching = Protocol::Batching::isolated;
  protocol.cache = Protocol::Cache::hot;
  protocol.target_relative_ci = 0;
  double seconds = 1e-7;
  Sampler s = sampler();
  s.repeat({1, true}, [&](Stream&, int) { device.now += (seconds = 3e-7 - seconds); });
  EXPECT_LE(s.measurement().values.size(), 100'000u);
  EXPECT_EQ(s.measurement().stopped_by, StopReason::count);
}

TEST_F(SamplerTest, ASecondMeasurementStartsFresh) {
  protocol.max_samples = 4;
  Sampler s = sampler();
  s.repeat({1, true}, work(1e-3));
  s.repeat({1, true}, work(2e-3));
  EXPECT_EQ(s.measurement().values.size(), 4u);
  EXPECT_THAT(s.measurement().values, Each(testing::DoubleNear(2e-3, 1e-9)));
  EXPECT_EQ(s.measurement().rank_medians.size(), 1u);
}

TEST_F(SamplerTest, ErrorsOfTheWorkPassThrough) {
  Sampler s = sampler();
  EXPECT_THROW(s.repeat({1, true}, [](Stream&, int) { throw std::domain_error("broken"); }), std::domain_error);
}

TEST_F(SamplerTest, SlowedRankTakesAboutTwiceAsLong) {
  device.tick = 1e-6;
  protocol.max_samples = 5;
  Sampler s = sampler();
  s.slow_down();
  s.repeat({2, true}, work(1e-3));
  EXPECT_THAT(s.measurement().values, Each(testing::DoubleNear(2e-3, 1e-5)));
}

TEST_F(SamplerTest, RotationExceedsTheCacheTwice) {
  const std::uint64_t cache = device.info().last_level_cache_bytes;
  const auto slots_of = [&](std::uint64_t bytes) { return Sampler::rotation(device, protocol, bytes).slots; };
  EXPECT_EQ(slots_of(cache), 3);
  EXPECT_EQ(slots_of(cache / 8), 17);
  EXPECT_TRUE(Sampler::rotation(device, protocol, cache / 8).exceeds_cache);
  EXPECT_EQ(slots_of(8), slots_of(64));
  protocol.cache = Protocol::Cache::hot;
  EXPECT_EQ(slots_of(8), 1);
}

// 480 MiB and more are the L3 that a small virtual machine shows of a large processor.
TEST_F(SamplerTest, ALargeCacheCostsNoMoreMemory) {
  for (const std::uint64_t mebibytes : {16u, 480u, 1152u}) {
    device.set_cache(mebibytes << 20);
    for (const std::uint64_t bytes : {8u, 1u << 10, 200u << 10, 30u << 20, 500u << 20}) {
      const Rotation rotation = Sampler::rotation(device, protocol, bytes);
      EXPECT_GE(rotation.slots, 1);
      EXPECT_LE(static_cast<double>(bytes) * rotation.slots,
                Sampler::max_rotation_bytes(DeviceKind::cpu, static_cast<double>(bytes)));
      EXPECT_LE(bytes * static_cast<std::uint64_t>(rotation.slots), std::max<std::uint64_t>(64u << 20, bytes));
      EXPECT_EQ(rotation.exceeds_cache, bytes * static_cast<std::uint64_t>(rotation.slots - 1) >= 2 * (mebibytes << 20))
          << bytes << " bytes, " << rotation.slots << " slots";
    }
  }
}

TEST_F(SamplerTest, StepNumbersContinueAfterWarmUp) {
  protocol.warmup_seconds = 0.35;
  protocol.max_samples = 6;
  Sampler s = sampler();
  std::vector<std::int64_t> seen;
  s.steps([&](std::int64_t step) {
    seen.push_back(step);
    device.now += step == 0 ? 0.2 : 0.1;
  });
  const Measurement& m = s.measurement();
  EXPECT_THAT(m.first_touch,
              ElementsAre(testing::DoubleEq(0.2), testing::DoubleNear(0.1, 1e-9), testing::DoubleNear(0.1, 1e-9)));
  EXPECT_THAT(m.values, Each(testing::DoubleNear(0.1, 1e-9)));
  EXPECT_EQ(m.values.size(), 6u);
  EXPECT_NEAR(m.window_seconds, 0.6, 1e-9);
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<std::int64_t>(i));
}

TEST_F(SamplerTest, AWindowIsCutIntoPieces) {
  protocol.max_seconds = 5.0;
  protocol.warmup_seconds = 0.2;
  Sampler s = sampler();
  s.window([&] {
    device.now += 0.0625;
    return 20;
  });
  const Measurement& m = s.measurement();
  EXPECT_EQ(m.values.size(), 10u);  // pieces of 0.5 s
  EXPECT_THAT(m.pieces, Each(320.0));
  EXPECT_THAT(m.values, Each(1.0 / 320.0));
  EXPECT_EQ(m.items, 1600);
  EXPECT_EQ(m.window_seconds, 5.0);
  EXPECT_EQ(m.stopped_by, StopReason::time);
  EXPECT_EQ(m.first_touch.size(), 1u);
}

TEST_F(SamplerTest, PiecesOfALongWindowLastASecond) {
  protocol.max_seconds = 20.0;
  Sampler s = sampler();
  s.window([&] {
    device.now += 0.25;
    return 1;
  });
  EXPECT_EQ(s.measurement().pieces.size(), 20u);
}

TEST_F(SamplerTest, AWindowThatDeliversNothingIsAnError) {
  Sampler s = sampler();
  EXPECT_THAT(
      [&] {
        s.window([&] {
          device.now += 0.5;
          return 0;
        });
      },
      testing::ThrowsMessage<Error>(HasSubstr("delivered no item")));
}

TEST_F(SamplerTest, AProcedureReportsItsOwnTimes) {
  Sampler s = sampler();
  s.procedure([&] {
    device.now += 100;
    return std::vector<double>{30.0, 20.0, 25.0};
  });
  const Measurement& m = s.measurement();
  EXPECT_THAT(m.values, ElementsAre(30.0, 20.0, 25.0));
  EXPECT_EQ(m.stopped_by, StopReason::done);
  EXPECT_EQ(m.summary.median, 25.0);
  EXPECT_NEAR(m.window_seconds, 100, 1e-9);
  EXPECT_THROW(s.procedure([] { return std::vector<double>{}; }), Error);
}

// Launches cost the host 5 us each and the device 1 us: behind the gate only the device's time is left.
TEST_F(SamplerTest, AGateHidesTheCostOfLaunches) {
  protocol.set_gate(1);
  std::vector<bool> gated;
  Sampler s = sampler();
  s.repeat({3, true}, [&](Stream&, int) {
    gated.push_back(device.gate_closed);
    device.now += device.gate_closed ? 1e-6 : 5e-6;
  });
  const Measurement& m = s.measurement();
  EXPECT_THAT(m.values, Each(testing::DoubleNear(1e-6, 1e-9)));
  EXPECT_GE(m.repetitions, 100);  // 1e-4 s by the gated time, not by that of warm-up's first sample
  const auto first = std::find(gated.begin(), gated.end(), true);
  EXPECT_GE(first - gated.begin(), 4);  // each slot once and a sample, before the first gate
  EXPECT_FALSE(device.gate_closed);
  EXPECT_GE(device.gates, static_cast<int>(m.values.size()));
}

TEST_F(SamplerTest, AGateHoldsALimitedNumberOfLaunches) {
  protocol.set_gate(10);
  Sampler s = sampler();
  s.repeat({2, true}, work(1e-9));
  EXPECT_EQ(s.measurement().repetitions, 40);
  device.gates = 0;
  protocol.set_gate(1000);  // never
  Sampler many(device, *comm, protocol, device.clock());
  many.repeat({2, true}, work(1e-4));
  EXPECT_EQ(device.gates, 0);
}

// The gate of the tenth sample opens by itself after 5 s.
TEST_F(SamplerTest, AfterATimeoutOfTheGateMeasuringStartsAgainWithHalfTheBatch) {
  protocol.set_gate(1);
  protocol.warmup_seconds = 0;
  std::int64_t calls = 0, before = 0, opened_calls = 0;
  int gate = 0;
  Sampler s = sampler();
  s.repeat({2, true}, [&](Stream&, int) {
    if (device.gates != std::exchange(gate, device.gates)) before = std::exchange(calls, 0);
    ++calls;
    if (device.gates == 10 && opened_calls == 0) device.timeouts = 1;
    if (device.gates == 11 && device.now > 5) opened_calls = before;
    device.now += 1e-6;
  });
  const Measurement& m = s.measurement();
  EXPECT_GE(opened_calls, 100);
  EXPECT_EQ(m.max_gated, opened_calls / 2);
  EXPECT_EQ(m.repetitions, opened_calls / 2);
  EXPECT_GE(m.at.front(), 5) << "no sample from before counts";
  EXPECT_EQ(m.at.size(), m.values.size());
  EXPECT_GE(m.values.size(), 30u);
  EXPECT_THAT(m.values, Each(testing::DoubleNear(1e-6, 1e-9)));
}

TEST_F(SamplerTest, AGateThatNeverHoldsIsDropped) {
  protocol.set_gate(1);
  device.timeouts = 1000;
  Sampler s = sampler();
  s.repeat({2, true}, [&](Stream&, int) { device.now += device.gate_closed ? 1e-6 : 5e-6; });
  const Measurement& m = s.measurement();
  EXPECT_EQ(m.max_gated, 0);
  EXPECT_LE(device.gates, 10);
  EXPECT_GE(m.repetitions, 20) << "the batch has grown again without the gate";
  EXPECT_THAT(m.values, Each(testing::DoubleNear(5e-6, 1e-9)));
}

TEST_F(SamplerTest, AGateThatHoldsIsNotLimited) {
  protocol.set_gate(1);
  Sampler s = sampler();
  s.repeat({2, true}, work(1e-6));
  EXPECT_EQ(s.measurement().max_gated, std::nullopt);
}

TEST_F(SamplerTest, AGateIsOpenedWhenTheWorkThrows) {
  protocol.set_gate(1);
  Sampler s = sampler();
  EXPECT_THROW(s.repeat({1, true},
                        [&](Stream&, int) {
                          device.now += 1e-4;
                          if (device.gate_closed) throw Error("broke");
                        }),
               Error);
  EXPECT_FALSE(device.gate_closed);
}

TEST_F(SamplerTest, AStragglerIsNotGated) {
  protocol.set_gate(1);
  device.tick = 1e-6;
  Sampler s = sampler();
  s.slow_down();
  s.repeat({2, true}, work(1e-4));
  EXPECT_EQ(device.gates, 0);
}

TEST(SamplerProtocol, TheGateIsPartOfTheHash) {
  Protocol gated, open;
  EXPECT_EQ(open.gated_launches(), 0);
  gated.set_gate(3);
  EXPECT_EQ(gated.gated_launches(), 3);
  EXPECT_NE(gated.hash(), open.hash());
}

}  // namespace
}  // namespace assay
