// The communicator's contract over NCCL, with one process and one GPU, real or emulated, per rank. The program starts
// its ranks itself, as `assay run` does.
#include "harness/comm/gather.h"
#include "harness/comm/nccl_entry.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/sampling/sampler.h"
#include "tests/support/communicator_contract.h"
#include "tests/support/hooked_communicator.h"
#include "tests/support/staged_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace assay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

int own_rank = 0;
int world_size = 1;
std::filesystem::path folder;

// Passes on rank 0's text through a file, one per call.
std::string share(const std::string& own) {
  static int calls = 0;
  const std::filesystem::path path = folder / std::to_string(calls++);
  if (own_rank == 0) {
    std::ofstream(path.string() + ".new") << own;
    std::filesystem::rename(path.string() + ".new", path);
    return own;
  }
  for (int i = 0; i < 2000; ++i) {
    if (std::ifstream file(path); file) return {std::istreambuf_iterator<char>(file), {}};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Error("rank 0 has shared nothing");
}

class NcclCommunicator : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = make_device(DeviceKind::cuda, own_rank).release();
    NcclWorld world;
    world.rank = own_rank;
    world.size = world_size;
    world.share_gpu = std::getenv("ASSAY_SHARE_GPU") != nullptr;
    comm_ = make_nccl_communicator(world, share).release();
  }
  static void TearDownTestSuite() {
    delete comm_;
    delete device_;
  }
  void SetUp() override { comm_->barrier(); }

  std::vector<float> to_host(const Buffer& buffer, std::size_t count, Stream& stream) {
    std::vector<float> values(count);
    device_->copy(values.data(), buffer.data(), count * sizeof(float), stream);
    stream.synchronize();
    return values;
  }
  Buffer ones(std::size_t count, Stream& stream) {
    const std::vector<float> values(count, 1);
    Buffer buffer = device_->allocate(count * sizeof(float));
    device_->copy(buffer.data(), values.data(), count * sizeof(float), stream);
    stream.synchronize();
    return buffer;
  }

  static inline Device* device_ = nullptr;
  static inline Communicator* comm_ = nullptr;
};

TEST_F(NcclCommunicator, KeepsTheContract) {
  const auto staged = test::make_staged_communicator(*comm_, *device_);
  EXPECT_EQ(staged->size(), world_size);
  for (const std::size_t count : {0, 1, 2, 1000, 100000}) test::expect_contract(*staged, count);
}

TEST_F(NcclCommunicator, HostDataGoesToEveryRank) {
  const std::string own(1000, static_cast<char>('a' + own_rank));
  std::string all(own.size() * static_cast<std::size_t>(world_size), '?');
  comm_->all_gather_host(own.data(), all.data(), own.size());
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<char>('a' + i / own.size()));
}

// Seconds on a clock that all processes of the host share.
double now() { return seconds_on(CLOCK_MONOTONIC); }

TEST_F(NcclCommunicator, WorkBehindALineUpWaitsForTheLastRank) {
  const auto stream = device_->make_stream();
  for (int late = 0; late < world_size; ++late) {
    if (own_rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double arrived = now();
    comm_->line_up(*stream);
    stream->synchronize();
    const double left = now();
    for (const double each : gather(*comm_, arrived)) EXPECT_LE(each, left);
  }
}

// Ranks come out of the barrier 1 ms after one another, as over several hosts: every sample begins after the last has.
TEST_F(NcclCommunicator, SamplesBeginAfterTheLastRankHasLeftTheBarrier) {
  if (!device_->info().emulated) GTEST_SKIP() << "only on inline streams does the host see when work runs";
  std::vector<double> left, began;
  test::HookedCommunicator skewed(*comm_, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(own_rank));
    left.push_back(now());
  });
  Protocol protocol;
  protocol.cache = Protocol::Cache::hot;
  protocol.batching = Protocol::Batching::isolated;
  protocol.min_samples = protocol.max_samples = 20;
  protocol.warmup_seconds = 0;
  Sampler sampler(*device_, skewed, protocol);
  const Buffer buffer = device_->allocate(sizeof(float));
  device_->zero(buffer.data(), sizeof(float), sampler.stream());
  sampler.repeat({1, true}, [&](Stream& stream, int) {
    began.push_back(now());
    comm_->all_reduce(buffer.data(), buffer.data(), 1, DType::f32, ReduceOp::sum, stream);
  });
  if (world_size == 1) return;
  ASSERT_EQ(left.size(), began.size());
  ASSERT_GE(began.size(), 20u);
  for (std::size_t i = 0; i < began.size(); ++i)
    for (const double each : gather(*comm_, left[i])) EXPECT_LE(each, began[i]) << "sample " << i;
}

TEST_F(NcclCommunicator, SumsSmallTypes) {
  const auto stream = device_->make_stream();
  const std::vector<fp16> halves(100, fp16(0.5f));
  std::vector<fp16> sums(halves.size());
  const Buffer buffer = device_->allocate(halves.size() * sizeof(fp16));
  device_->copy(buffer.data(), halves.data(), buffer.bytes(), *stream);
  comm_->all_reduce(buffer.data(), buffer.data(), halves.size(), DType::fp16, ReduceOp::sum, *stream);
  device_->copy(sums.data(), buffer.data(), buffer.bytes(), *stream);
  stream->synchronize();
  for (const fp16 sum : sums) EXPECT_EQ(static_cast<float>(sum), 0.5f * static_cast<float>(world_size));
}

// As in a training step: captured once, on a side stream that forks from the main one and joins it.
TEST_F(NcclCommunicator, CallsAreCapturedInAGraph) {
  const auto stream = device_->make_stream(), side = device_->make_stream();
  const auto fork = device_->make_event(), join = device_->make_event();
  constexpr std::size_t count = 1000;
  const Buffer buffer = ones(count, *stream);
  comm_->all_reduce(buffer.data(), buffer.data(), count, DType::f32, ReduceOp::max, *side);  // connects, outside
  side->synchronize();
  std::string why_not;
  const auto graph = device_->capture(
      *stream,
      [&] {
        fork->record(*stream);
        side->wait(*fork);
        comm_->all_reduce(buffer.data(), buffer.data(), count, DType::f32, ReduceOp::sum, *side);
        join->record(*side);
        stream->wait(*join);
      },
      why_not);
  ASSERT_TRUE(graph) << why_not;
  EXPECT_EQ(to_host(buffer, count, *stream)[0], 1) << "nothing runs while it is captured";
  graph->launch(*stream);
  graph->launch(*stream);
  for (const float value : to_host(buffer, count, *stream))
    ASSERT_EQ(value, static_cast<float>(world_size * world_size));
}

TEST_F(NcclCommunicator, RegisteredMemoryCanBeUsed) {
  const auto stream = device_->make_stream();
  EXPECT_EQ(comm_->why_not_registered(Registration::local), "");
  const Buffer buffer = comm_->allocate_registered(std::size_t{2} << 20, Registration::local);
  ASSERT_GE(buffer.bytes(), std::size_t{2} << 20);
  const std::vector<float> values(1000, 2);
  device_->copy(buffer.data(), values.data(), values.size() * sizeof(float), *stream);
  comm_->all_reduce(buffer.data(), buffer.data(), values.size(), DType::f32, ReduceOp::sum, *stream);
  EXPECT_EQ(to_host(buffer, 1, *stream)[0], 2 * static_cast<float>(world_size));
}

TEST_F(NcclCommunicator, SymmetricMemoryCanBeUsed) {
  if (const std::string why_not = comm_->why_not_registered(Registration::symmetric); !why_not.empty())
    GTEST_SKIP() << why_not;
  const auto stream = device_->make_stream();
  const Buffer window = comm_->allocate_registered(std::size_t{2} << 20, Registration::symmetric);
  const std::vector<float> values(1000, 2);
  const auto sum = [&](const Buffer& buffer) {
    device_->copy(buffer.data(), values.data(), values.size() * sizeof(float), *stream);
    return comm_->choice_of([&] {
      comm_->all_reduce(buffer.data(), buffer.data(), values.size(), DType::f32, ReduceOp::sum, *stream);
      stream->synchronize();
    });
  };
  const std::string choice = sum(window);
  EXPECT_EQ(to_host(window, 1, *stream)[0], 2 * static_cast<float>(world_size));
  const std::string other = sum(comm_->allocate_registered(1 << 20, Registration::local));
  if (!device_->info().emulated || own_rank != 0) return;  // whether GPUs can use it depends on their links
  EXPECT_THAT(choice, StartsWith("symmetric/AllReduce"));
  EXPECT_EQ(other, "RING/SIMPLE");
}

TEST_F(NcclCommunicator, NamesItsImplementationAndTransport) {
  const auto stream = device_->make_stream();
  const Buffer buffer = ones(1000, *stream);
  const std::string choice = comm_->choice_of([&] {
    comm_->all_reduce(buffer.data(), buffer.data(), 1000, DType::f32, ReduceOp::sum, *stream);
    stream->synchronize();
  });
  if (own_rank == 0 && !choice.empty()) {
    EXPECT_THAT(choice, HasSubstr("/"));
  }
  EXPECT_THAT(comm_->implementation(), StartsWith("NCCL 2."));
  EXPECT_EQ(comm_->connections().empty(), world_size == 1);
  EXPECT_THAT(comm_->implementation(), testing::MatchesRegex("NCCL [0-9.]+"));
  EXPECT_TRUE(comm_->poll_error().empty());
}

TEST_F(NcclCommunicator, ErrorsNameTheCallAndNcclsMessage) {
  const auto stream = device_->make_stream();
  const Buffer buffer = ones(1, *stream);
  std::string message;
  try {
    comm_->broadcast(buffer.data(), buffer.data(), 1, DType::f32, world_size, *stream);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_THAT(message, StartsWith("ncclBroadcast("));
  EXPECT_THAT(message, HasSubstr("ncclInvalidArgument"));
}

int run_rank(int rank) {
  own_rank = rank;
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* ranks = std::getenv("ASSAY_TEST_RANKS");
  assay::world_size = ranks ? std::atoi(ranks) : 2;
  std::string name = (std::filesystem::temp_directory_path() / "assay-nccl-XXXXXX").string();
  if (!mkdtemp(name.data())) return 1;
  assay::folder = name;
  std::vector<pid_t> pids;
  for (int rank = 1; rank < assay::world_size; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) std::_Exit(assay::run_rank(rank));
    pids.push_back(pid);
  }
  int failed = assay::run_rank(0);
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    failed |= status;
  }
  std::filesystem::remove_all(assay::folder);
  return failed != 0;
}
