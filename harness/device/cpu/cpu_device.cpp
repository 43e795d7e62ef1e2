// CpuDevice: memory from mmap, events from the steady clock.
#include "harness/device/cpu/cpu_device.h"

#include "harness/core/out_of_memory.h"
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/evict.h"
#include "harness/device/cpu/limits.h"
#include "harness/device/cpu/team.h"
#include "harness/device/cpu/topology.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace assay::cpu {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t huge_page = std::size_t{2} << 20;
// Requests from this size on are checked against free memory, an estimate too coarse for smaller ones.
constexpr std::size_t worth_checking = std::size_t{64} << 20;

class CpuEvent : public Event {
 public:
  void record(Stream&) override { at_ = SteadyClock::now(); }
  void synchronize() override {}
  double seconds_since(const Event& start) const override {
    return std::chrono::duration<double>(at_ - static_cast<const CpuEvent&>(start).at_).count();
  }

 private:
  SteadyClock::time_point at_;
};

// Cost of reading the clock twice: the minimum of several averages, since interruptions only add time.
double measure_timer_cost() {
  constexpr int batches = 20, pairs = 500;
  double least = 1.0;
  for (int batch = 0; batch < batches; ++batch) {
    const auto start = SteadyClock::now();
    auto last = start;
    for (int i = 0; i < 2 * pairs - 1; ++i) last = SteadyClock::now();
    least = std::min(least, std::chrono::duration<double>(last - start).count() / pairs);
  }
  return least;
}

OutOfMemory out_of_memory(std::size_t bytes, const MemoryLimits& limits, const std::string& why) {
  return OutOfMemory(fmt::format("out of memory: {} bytes requested, {} available{}", bytes, limits.available(), why));
}

Buffer map_memory(std::size_t bytes) {
  if (bytes == 0) return {};
  if (bytes >= worth_checking) {
    // The kernel would overcommit and kill the process at the first touch.
    const MemoryLimits limits = memory_limits();
    if (limits.machine_available > 0 && bytes > limits.available()) throw out_of_memory(bytes, limits, "");
  }
  const bool large = bytes >= huge_page;
  const std::size_t whole = large ? (bytes + huge_page - 1) / huge_page * huge_page : bytes;
  const std::size_t room = large ? whole + huge_page : bytes;
  void* mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw out_of_memory(bytes, memory_limits(), fmt::format(" ({})", std::strerror(errno)));
  auto* start = static_cast<std::byte*>(mapped);
  if (large) {
    const std::size_t into = reinterpret_cast<std::uintptr_t>(start) % huge_page;
    start += into == 0 ? 0 : huge_page - into;
    madvise(start, whole, MADV_HUGEPAGE);  // only advice: the record's page size shows what came of it
  }
  return Buffer(start, bytes, [mapped, room](void*, std::size_t) { munmap(mapped, room); });
}

class CpuDevice : public Device {
 public:
  CpuDevice() : timer_cost_(measure_timer_cost()) {
    info_.kind = DeviceKind::cpu;
    info_.name = processor().name();
    info_.memory_bytes = memory_limits().usable();
    info_.last_level_cache_bytes = topology().last_level_cache_bytes(rank_cpus());
    info_.compute_units = static_cast<int>(rank_cpus().size());
  }

  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<InlineStream>(); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<CpuEvent>(); }
  Buffer allocate(std::size_t bytes, Memory) override { return map_memory(bytes); }
  void copy(void* to, const void* from, std::size_t bytes, Stream&) override { std::memcpy(to, from, bytes); }
  void zero(void* at, std::size_t bytes, Stream&) override { std::memset(at, 0, bytes); }
  std::string_view timer() const override { return "steady_clock"; }
  double timer_cost() const override { return timer_cost_; }
  // Also long enough that ranks starting at slightly different times do not show in the first of many calls.
  double shortest_sample() const override { return std::max(1000.0 * timer_cost_, 100e-6); }

  // The threads that the case uses do it: they are awake then when the next sample begins, and another team size would
  // make OpenMP end and restart threads inside it.
  void evict(Stream&, std::span<const MemoryRange> ranges) override {
    const Team team(std::min(omp_get_max_threads(), info_.compute_units));
    const auto parts = static_cast<std::size_t>(team.size());
    team.run([&](int thread) {
      const auto part = static_cast<std::size_t>(thread);
      for (const MemoryRange range : ranges) {
        const std::size_t begin = range.size() * part / parts, end = range.size() * (part + 1) / parts;
        if (begin < end) evict_lines(range.subspan(begin, end - begin));
      }
    });
  }

 private:
  DeviceInfo info_;
  double timer_cost_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace assay::cpu
