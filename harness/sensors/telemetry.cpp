// The sampling thread.
#include "harness/sensors/telemetry.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "harness/sensors/gpu_sensors.h"
#include "harness/sensors/outside_cpu.h"
#include "harness/sensors/sensors.h"
#include "harness/sensors/series_builder.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

namespace assay {
namespace {

// Moves the calling thread to one CPU; it inherited those of the measuring thread.
void bind_to(int cpu) {
  if (cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

struct Telemetry::State {
  explicit State(TelemetryOptions given) : options(std::move(given)) {
    ASSAY_CHECK(options.period_seconds > 0, "a telemetry period of {} s", options.period_seconds);
    if (options.cpus.empty()) options.cpus = cpu::rank_cpus();
    if (options.host) sensors = find_sensors(Root(options.root), options.cpus);
    if (!options.host_cpus.empty()) {
      auto watch = std::make_unique<OutsideCpuSensor>(Root(options.root), options.host_cpus);
      outside = watch.get();
      sensors.push_back(std::move(watch));
    }
    if (!options.gpu_uuid.empty() || !options.gpu_pci.empty())
      if (auto gpu = find_gpu_sensor(options.gpu_uuid, options.gpu_pci)) sensors.push_back(std::move(gpu));
  }

  void sample(Clock::time_point origin, SeriesBuilder& builder) {
    readings.clear();
    const double seconds = seconds_since(origin);
    for (auto& sensor : sensors) sensor->read(seconds, readings);
    for (const auto& reading : readings) builder.add(seconds, reading);
  }

  void run(Clock::time_point origin) {
    if (!options.cpus.empty()) bind_to(options.cpus.back());
    SeriesBuilder builder(options.max_points);
    for (auto& sensor : sensors) sensor->begin();
    auto next = Clock::now();
    const auto period =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.period_seconds));
    std::unique_lock lock(mutex);
    while (!stopping) {
      lock.unlock();
      sample(origin, builder);
      lock.lock();
      next = std::max(next + period, Clock::now());  // no catching up after a pause
      wake.wait_until(lock, next, [&] { return stopping; });
    }
    lock.unlock();
    sample(origin, builder);
    series = builder.take();
  }

  TelemetryOptions options;
  std::vector<std::unique_ptr<Sensor>> sensors;
  OutsideCpuSensor* outside = nullptr;  // one of them
  std::vector<Reading> readings;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread thread;
  std::map<std::string, Series> series;
};

Telemetry::Telemetry(TelemetryOptions options) : state_(std::make_unique<State>(std::move(options))) {}

Telemetry::~Telemetry() { stop(); }

void Telemetry::start(Clock::time_point origin) {
  stop();
  state_->stopping = false;
  state_->thread = std::thread([state = state_.get(), origin] { state->run(origin); });
}

std::map<std::string, Series> Telemetry::stop() {
  if (!state_->thread.joinable()) return {};
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
  state_->thread.join();
  return std::move(state_->series);
}

std::optional<OutsideCpu> Telemetry::outside_cpu(double from, double to) {
  return state_->outside ? state_->outside->in_window(from, to) : std::nullopt;
}

double clock_by_dependent_adds() {
  constexpr int adds_per_turn = 16, turns = 2000;  // about 10 us at 3 GHz: 300 times the cost of reading the clock
  double best = std::numeric_limits<double>::max();
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::uint64_t sum = static_cast<std::uint64_t>(attempt);
    std::uint64_t one = 1;
    asm volatile("" : "+r"(one));  // hidden from the compiler: it or the CPU could fold a constant add
    const auto start = Clock::now();
    for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 16
      for (int i = 0; i < adds_per_turn; ++i) {
        sum += one;
        asm volatile("" : "+r"(sum));
      }
    }
    best = std::min(best, seconds_since(start));
  }
  return static_cast<double>(adds_per_turn * turns) / best;
}

}  // namespace assay
