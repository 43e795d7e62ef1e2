// The sampler with several ranks: what they agree on, when, and whose times are kept.
#include "harness/core/error.h"
#include "harness/sampling/sampler.h"
#include "tests/support/hooked_communicator.h"
#include "tests/support/thread_communicator.h"
#include "tests/unit/sampling/fake_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {
namespace {

using test::FakeDevice;
using testing::Each;
using testing::ElementsAre;

// What `measure(sampler, device, rank)` measured on each rank.
template <typename Measure>
std::vector<Measurement> on_ranks(int ranks, const Protocol& protocol, Measure measure) {
  std::vector<Measurement> measured(static_cast<std::size_t>(ranks));
  test::run_ranks(ranks, [&](Communicator& comm) {
    FakeDevice device;
    Sampler sampler(device, comm, protocol, device.clock());
    measure(sampler, device, comm.rank());
    measured[static_cast<std::size_t>(comm.rank())] = sampler.measurement();
  });
  return measured;
}

Protocol two_seconds() {
  Protocol protocol;
  protocol.max_seconds = 2.0;
  return protocol;
}

// gpus=each: one rank works at a time, and the slowest one's series is kept.
TEST(SamplerRanks, TakeTurns) {
  std::atomic<int> working{0}, max_working{0};
  Protocol protocol;
  protocol.min_samples = protocol.max_samples = 7;
  const auto measured = on_ranks(3, protocol, [&](Sampler& s, FakeDevice& device, int rank) {
    s.take_turns();
    int calls = 0;
    s.repeat({2, true}, [&](Stream&, int) {
      const int now = ++working;
      max_working = std::max(max_working.load(), now);
      if (++calls < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // time for others to overlap
      device.now += rank == 1 ? 3e-6 : 1e-6;
      --working;
    });
  });
  EXPECT_EQ(max_working, 1);
  for (const Measurement& m : measured) {
    EXPECT_THAT(m.values, Each(testing::DoubleNear(3e-6, 1e-9)));
    EXPECT_EQ(m.values.size(), m.at.size());
    EXPECT_EQ(m.values, measured[1].values);
    EXPECT_EQ(m.repetitions, measured[1].repetitions);
    EXPECT_EQ(m.stopped_by, measured[1].stopped_by);
    EXPECT_EQ(m.samples_of, 1);
    EXPECT_THAT(m.rank_medians, ElementsAre(testing::DoubleNear(1e-6, 1e-9), testing::DoubleNear(3e-6, 1e-9),
                                            testing::DoubleNear(1e-6, 1e-9)));
  }
}

// Each device has its own clock, which the first rank's is ahead of by 5 s.
TEST(SamplerRanks, InTurnsEachRankKeepsItsOwnWindow) {
  const auto measured = on_ranks(2, two_seconds(), [](Sampler& s, FakeDevice& device, int rank) {
    s.take_turns();
    if (rank == 0) device.now += 5;
    s.repeat({1, true}, [&](Stream&, int) { device.now += rank == 1 ? 3e-3 : 1e-3; });
  });
  for (const Measurement& m : measured) EXPECT_LT(m.window_start, 5) << "the slower rank's";
  ASSERT_TRUE(measured[0].own_window && measured[1].own_window);
  EXPECT_GE(measured[0].own_window->first, 5);
  EXPECT_GT(measured[0].own_window->second, measured[0].own_window->first);
  EXPECT_EQ(*measured[1].own_window,
            std::pair(measured[1].window_start, measured[1].window_start + measured[1].window_seconds));
}

TEST(SamplerRanks, AWindowInTurnsCountsTheSlowestRanksItems) {
  const auto measured = on_ranks(2, two_seconds(), [](Sampler& s, FakeDevice& device, int rank) {
    s.take_turns();
    s.window([&] {
      device.now += rank == 1 ? 0.25 : 0.125;
      return 10;
    });
  });
  for (const Measurement& m : measured) {
    EXPECT_THAT(m.pieces, Each(40.0));
    EXPECT_EQ(m.items, 40.0 * m.window_seconds);
    EXPECT_THAT(m.rank_medians, ElementsAre(0.0125, 0.025));
  }
}

// Two ranks, the second three times slower.
TEST(SamplerRanks, AgreeOnRepetitionsAndKeepTheSlowestTime) {
  std::vector<std::int64_t> calls(2);
  const auto measured = on_ranks(2, {}, [&](Sampler& s, FakeDevice& device, int rank) {
    s.repeat({rank == 0 ? 4 : 5, true}, [&](Stream&, int) {
      device.now += rank == 0 ? 1e-6 : 3e-6;
      ++calls[static_cast<std::size_t>(rank)];
    });
  });
  EXPECT_EQ(calls[0], calls[1]);  // else a collective would hang
  EXPECT_EQ(measured[0].repetitions, measured[1].repetitions);
  EXPECT_GE(measured[0].repetitions, 100);  // the faster rank's need
  EXPECT_EQ(measured[0].values, measured[1].values);
  EXPECT_THAT(measured[0].values, Each(testing::DoubleNear(3e-6, 1e-9)));
  for (const Measurement& m : measured)
    EXPECT_THAT(m.rank_medians, ElementsAre(testing::DoubleNear(1e-6, 1e-9), testing::DoubleNear(3e-6, 1e-9)));
}

TEST(SamplerRanks, AWindowCountsTheItemsOfAllRanks) {
  const auto measured = on_ranks(3, two_seconds(), [](Sampler& s, FakeDevice& device, int rank) {
    s.window([&] {  // pieces of at least 0.2 s take two calls; the last rank is half as fast
      device.now += rank == 2 ? 0.25 : 0.125;
      return rank == 2 ? 20 : 10;
    });
  });
  for (const Measurement& m : measured) {
    EXPECT_THAT(m.pieces, Each(240.0));  // 20 + 20 + 20 items in 0.25 s
    EXPECT_EQ(m.items, 60.0 * static_cast<double>(m.pieces.size()));
    EXPECT_EQ(m.window_seconds, 0.25 * static_cast<double>(m.pieces.size()));
    EXPECT_THAT(m.rank_medians, ElementsAre(0.0125, 0.0125, 0.0125));
  }
}

TEST(SamplerRanks, AProcedureMustGiveEquallyManySamplesOnAllRanks) {
  int errors = 0;
  std::mutex lock;
  test::run_ranks(2, [&](Communicator& comm) {
    FakeDevice device;
    const Protocol protocol;
    Sampler s(device, comm, protocol, device.clock());
    try {
      s.procedure([&] { return std::vector<double>(static_cast<std::size_t>(comm.rank()), 1.0); });
    } catch (const Error&) {
      const std::lock_guard<std::mutex> hold(lock);
      ++errors;
    }
  });
  EXPECT_EQ(errors, 2);
}

// Two of the four ranks' gates time out, at different times.
TEST(SamplerRanks, ATimeoutOfOneRanksGateLimitsAll) {
  Protocol protocol;
  protocol.set_gate(1);
  protocol.warmup_seconds = 1e-4;
  protocol.max_samples = 40;
  std::vector<std::int64_t> calls(4);
  const auto measured = on_ranks(4, protocol, [&](Sampler& s, FakeDevice& device, int rank) {
    if (rank == 1) device.timeouts = 1;
    s.repeat({2, true}, [&](Stream&, int) {
      ++calls[static_cast<std::size_t>(rank)];
      if (rank == 3 && device.gates == 20) device.timeouts = 1;
      device.now += 1e-6;
    });
  });
  EXPECT_THAT(calls, Each(calls[0]));
  for (const Measurement& m : measured) {
    ASSERT_TRUE(m.max_gated);
    EXPECT_EQ(m.max_gated, measured[0].max_gated);
    EXPECT_GE(m.repetitions, 1);
    EXPECT_LE(m.repetitions, *m.max_gated);
    EXPECT_EQ(m.repetitions, measured[0].repetitions);
  }
}

// Every 20th call of one rank stalls, which the mean of a batch hides.
TEST(SamplerRanks, SingleCallsAfterBatchesShowTheSlowOnes) {
  const auto stalling = [](Sampler& s, FakeDevice& device, int rank) {
    s.calls_are_collective();
    int calls = 0;
    s.repeat({1, true}, [&, rank](Stream&, int) { device.now += rank == 1 && ++calls % 20 == 0 ? 1e-3 : 1e-5; });
  };
  Protocol protocol = two_seconds();
  protocol.cache = Protocol::Cache::hot;
  protocol.min_samples = 2000;  // so that the window is long, however little the samples differ
  for (const Measurement& m : on_ranks(3, protocol, stalling)) {
    EXPECT_GT(m.repetitions, 1);
    EXPECT_GE(m.single_calls.size(), 100u);
    EXPECT_LE(m.single_calls.size(), 1000u);
    EXPECT_NEAR(median(m.single_calls), 1e-5, 1e-8);
    EXPECT_NEAR(std::ranges::max(m.single_calls), 1e-3, 1e-8);
  }
  Protocol isolated = protocol;
  isolated.batching = Protocol::Batching::isolated;
  for (const Measurement& m : on_ranks(3, isolated, stalling)) EXPECT_EQ(m.single_calls, m.values);
  for (const Measurement& m : on_ranks(3, two_seconds(), [](Sampler&s, FakeDevice&device, int) {
         s.repeat({1, true}, [&](Stream&, int) { device.now += 1e-5; });
       }))
    EXPECT_TRUE(m.single_calls.empty()) << "calls that are no collectives";
}

// Steps of a few ms to many seconds that slow down by a third within the time limit of 30 s; the last rank is the
// slowest.
struct TimedSteps {
  std::vector<std::uint64_t> collectives;  // before each measured step
  Measurement measured;
};
TimedSteps timed_steps(int ranks, double seconds) {
  TimedSteps result;
  test::run_ranks(ranks, [&](Communicator& comm) {
    FakeDevice device;
    Protocol protocol;
    protocol.max_seconds = 30;
    protocol.target_relative_ci = 0;
    Sampler sampler(device, comm, protocol, device.clock());
    std::vector<std::uint64_t> collectives;
    sampler.steps([&](std::int64_t step) {
      collectives.push_back(comm.calls().seen().begun);
      device.now += seconds * (1 + 0.01 * seconds * static_cast<double>(step)) * (1 + 0.001 * comm.rank());
    });
    if (comm.rank() > 0) return;
    const auto steps = static_cast<std::ptrdiff_t>(sampler.measurement().values.size());
    result.collectives.assign(collectives.end() - steps, collectives.end());
    result.measured = sampler.measurement();
  });
  return result;
}

TEST(SamplerRanks, AgreeAtMostOnceInSixteenSteps) {
  for (const int ranks : {2, 4, 8})
    for (const double seconds : {2e-3, 0.1}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, steps of " << seconds << " s");
      const TimedSteps steps = timed_steps(ranks, seconds);
      EXPECT_EQ(steps.measured.stopped_by, StopReason::time);
      std::size_t agreements = 0, batch = 1, smallest = steps.collectives.size();
      std::uint64_t max_at_once = 0;
      for (std::size_t i = 1; i < steps.collectives.size(); ++i, ++batch) {
        const std::uint64_t now = steps.collectives[i] - steps.collectives[i - 1];
        if (now == 0) continue;
        max_at_once = std::max(max_at_once, now);
        smallest = std::min(smallest, batch);
        batch = 0;
        ++agreements;
      }
      EXPECT_GE(agreements, 5u) << "nothing else ends the steps at the time limit";
      EXPECT_EQ(max_at_once, 1u);
      EXPECT_GE(std::min(smallest, batch), 16u);
    }
}

TEST(SamplerRanks, LongStepsEndAtTheTimeLimit) {
  for (const double seconds : {0.01, 0.1, 0.25, 0.9, 1.7, 3.0, 12.0, 25.0, 40.0}) {
    const Measurement m = timed_steps(2, seconds).measured;
    EXPECT_EQ(m.stopped_by, StopReason::time) << seconds;
    EXPECT_GE(m.window_seconds, 28) << seconds;
    EXPECT_LE(m.window_seconds, 31 + 2 * seconds) << seconds;
    EXPECT_EQ(m.at.size(), m.values.size());
  }
}

// Steps become ten times slower after 5 s: at the next agreement ranks know.
TEST(SamplerRanks, StepsThatSlowDownOverrunTheTimeLimitByOneBatch) {
  Protocol protocol;
  protocol.max_seconds = 10;
  const auto measured = on_ranks(2, protocol, [](Sampler& s, FakeDevice& device, int) {
    s.steps([&](std::int64_t) { device.now += device.now < 5 ? 0.02 : 0.2; });
  });
  EXPECT_LE(measured[0].window_seconds, 10 + 16 * 0.2);
}

TEST(SamplerRanks, EachStepIsTheSlowestRanks) {
  Protocol protocol;
  protocol.max_samples = 40;
  protocol.min_samples = 40;
  const auto measured = on_ranks(3, protocol, [](Sampler& s, FakeDevice& device, int rank) {
    s.steps([&](std::int64_t step) { device.now += step % 3 == rank ? 0.02 : 0.001 * (1 + rank); });
  });
  for (const Measurement& m : measured) {
    EXPECT_EQ(m.values.size(), 40u);
    EXPECT_THAT(m.values, Each(testing::DoubleNear(0.02, 1e-9)));
    EXPECT_EQ(m.stopped_by, StopReason::count);
    EXPECT_EQ(m.window_seconds, measured[0].window_seconds);
    EXPECT_THAT(m.rank_medians, ElementsAre(testing::DoubleNear(0.001, 1e-9), testing::DoubleNear(0.002, 1e-9),
                                            testing::DoubleNear(0.003, 1e-9)));
  }
}

TEST(SamplerRanks, AgreeOnceAboutAPieceOfAWindow) {
  test::run_ranks(4, [](Communicator& comm) {
    FakeDevice device;
    Protocol protocol = two_seconds();
    protocol.warmup_seconds = 0;
    Sampler sampler(device, comm, protocol, device.clock());
    std::vector<std::uint64_t> collectives;
    sampler.window([&] {
      collectives.push_back(comm.calls().seen().begun);
      device.now += 0.25;  // a piece
      return 1;
    });
    ASSERT_EQ(collectives.size(), 1 + sampler.measurement().pieces.size());
    EXPECT_EQ(collectives.back() - collectives[1], collectives.size() - 2);
  });
}

// Ranks on several hosts come out of a barrier one after another, here 1 ms apart, and the work is a collective of
// 10 us, which ends when the last rank has come.
TEST(SamplerRanks, ReleaseSkewOfABarrierIsNotInTheSamples) {
  for (const auto batching : {Protocol::Batching::batched, Protocol::Batching::isolated})
    for (const int ranks : {2, 4, 8})
      test::run_ranks(ranks, [&](Communicator& comm) {
        FakeDevice device;
        const auto meet = [&] { device.now = comm.max_of(device.now); };
        test::HookedCommunicator skewed(
            comm, [&] { device.now += 1e-3 * comm.rank(); }, meet);
        Protocol protocol;
        protocol.batching = batching;
        protocol.cache = Protocol::Cache::hot;
        Sampler sampler(device, skewed, protocol, device.clock());
        sampler.calls_are_collective();
        sampler.repeat({1, true}, [&](Stream&, int) {
          meet();
          device.now += 1e-5;
        });
        EXPECT_THAT(sampler.measurement().values, Each(testing::DoubleNear(1e-5, 1e-9)));
        EXPECT_EQ(sampler.measurement().repetitions > 1, batching == Protocol::Batching::batched);
      });
}

}  // namespace
}  // namespace assay
