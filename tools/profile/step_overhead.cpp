// step_overhead [SECONDS_PER_STEP=0.1] [MAX_SECONDS=30]
// How much of a training step the harness itself takes: 1, 2, 4 and 8 ranks sleep that long in every step and then wait
// for each other, as the reduction of gradients makes them. The ranks are threads that agree over TCP as ranks on GPUs
// do. Prints the share of the window that was spent outside of steps.
#include "harness/comm/communicator.h"
#include "harness/comm/host_group.h"
#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

using namespace assay;

namespace {

// The host side of a communicator; steps that sleep need no other.
class HostCommunicator final : public Communicator {
 public:
  explicit HostCommunicator(HostGroup& hosts) : hosts_(hosts) {}
  int rank() const override { return hosts_.rank(); }
  int size() const override { return hosts_.size(); }
  std::string implementation() const override { return "hosts"; }
  void barrier() override {
    const CountedCall call(calls_, "barrier");
    hosts_.barrier();
  }
  double max_of(double value) override {
    std::vector<double> all(static_cast<std::size_t>(size()));
    all_gather_host(&value, all.data(), sizeof value);
    return *std::max_element(all.begin(), all.end());
  }
  void all_gather_host(const void* send, void* receive, std::size_t bytes) override {
    const CountedCall call(calls_, "all_gather_host");
    hosts_.all_gather(send, receive, bytes);
  }

  void all_reduce(const void*, void*, std::size_t, DType, ReduceOp, Stream&) override { none(); }
  void all_gather(const void*, void*, std::size_t, DType, Stream&) override { none(); }
  void reduce_scatter(const void*, void*, std::size_t, DType, ReduceOp, Stream&) override { none(); }
  void broadcast(const void*, void*, std::size_t, DType, int, Stream&) override { none(); }
  void all_to_all(const void*, void*, std::size_t, DType, Stream&) override { none(); }
  void send(const void*, std::size_t, DType, int, Stream&) override { none(); }
  void receive(void*, std::size_t, DType, int, Stream&) override { none(); }
  void group(const std::function<void()>&, Stream&) override { none(); }
  std::unique_ptr<Communicator> split(int, int) override { none(); }
  [[noreturn]] void abort(const std::string& why) override { throw Error(why); }

 private:
  [[noreturn]] static void none() { throw Error("only hosts agree here"); }
  HostGroup& hosts_;
};

struct Overhead {
  double share = 0;  // of the rank with the largest
  std::size_t steps = 0;
  std::uint64_t agreements = 0;  // between the first and the last step of the window
  double step_seconds = 0;
};

Overhead measured(int ranks, double seconds, const Protocol& protocol) {
  Overhead result;
  std::mutex lock;
  std::barrier reduction(ranks);
  std::promise<std::string> address;
  const std::shared_future<std::string> shared = address.get_future().share();
  const auto run = [&](int rank) {
    const auto share = [&](const std::string& own) {
      if (rank == 0) address.set_value(own);
      return shared.get();
    };
    HostGroup hosts(rank, ranks, false, share, 60);
    HostCommunicator comm(hosts);
    const std::unique_ptr<Device> device = make_device(DeviceKind::cpu, 0);
    Sampler sampler(*device, comm, protocol);
    std::vector<double> inside;
    std::vector<std::uint64_t> calls;
    sampler.steps([&](std::int64_t) {
      calls.push_back(comm.calls().seen().begun);
      const Clock::time_point start = Clock::now();
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      reduction.arrive_and_wait();
      inside.push_back(seconds_since(start));
    });
    const Measurement& m = sampler.measurement();
    const std::size_t warm = inside.size() - m.values.size();
    const double slept = std::accumulate(inside.begin() + static_cast<std::ptrdiff_t>(warm), inside.end(), 0.0);
    const std::lock_guard hold(lock);
    result.share = std::max(result.share, 1 - slept / m.window_seconds);
    result.steps = m.values.size();
    result.agreements = calls.back() - calls[warm];
    result.step_seconds = m.summary.median;
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  return result;
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 0.1;
  Protocol protocol;
  protocol.form = Protocol::Form::steps;
  protocol.max_seconds = count > 2 ? std::atof(words[2]) : 30;
  protocol.target_relative_ci = 0;  // until the time limit
  protocol.warmup_seconds = seconds;
  if (!(seconds > 0 && protocol.max_seconds > 0)) {
    fmt::print(stderr, "usage: step_overhead [SECONDS_PER_STEP=0.1] [MAX_SECONDS=30]\n");
    return 2;
  }
  fmt::print("ranks  steps  agreements  step, ms  share of the harness\n");
  for (const int ranks : {1, 2, 4, 8}) {
    const Overhead found = measured(ranks, seconds, protocol);
    fmt::print("{:5}  {:5}  {:10}  {:8.3f}  {:.4f} %\n", ranks, found.steps, found.agreements, 1e3 * found.step_seconds,
               100 * found.share);
    std::fflush(stdout);
  }
}
