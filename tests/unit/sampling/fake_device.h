// A device whose time is a number that the test's work advances, so that the sampler is exactly predictable.
#pragma once

#include "harness/core/error.h"
#include "harness/device/device.h"

#include <memory>

namespace assay::test {

class FakeDevice final : public Device {
 public:
  double now = 0;            // seconds
  double tick = 0;           // that each reading of the clock takes
  double shortest = 1e-4;    // shortest_sample()
  double evict_seconds = 0;  // that an eviction takes
  int evictions = 0;
  std::size_t evicted_bytes = 0;
  bool gate_closed = false;
  int gates = 0;
  int timeouts = 0;  // of the next gates

  FakeDevice() {
    info_.name = "fake";
    info_.last_level_cache_bytes = std::uint64_t{1} << 20;
    info_.compute_units = 1;
  }
  void set_cache(std::uint64_t bytes) { info_.last_level_cache_bytes = bytes; }
  // For Sampler: reads this device's time.
  auto clock() {
    return [this] {
      now += tick;
      return now;
    };
  }

  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<FakeStream>(*this); }
  std::unique_ptr<Event> make_event() override { return std::make_unique<FakeEvent>(*this); }
  Buffer allocate(std::size_t, Memory) override { return {}; }
  void copy(void*, const void*, std::size_t, Stream&) override {}
  void zero(void*, std::size_t, Stream&) override {}
  std::string_view timer() const override { return "fake"; }
  double timer_cost() const override { return shortest / 1000; }
  double shortest_sample() const override { return shortest; }
  void evict(Stream&, std::span<const MemoryRange> ranges) override {
    ++evictions;
    for (const MemoryRange range : ranges) evicted_bytes += range.size();
    now += evict_seconds;
  }
  void close_gate(Stream&) override {
    gate_closed = true;
    ++gates;
    timed_out_ = timeouts > 0 && timeouts-- > 0;
    if (timed_out_) now += 5;
  }
  void open_gate() override { gate_closed = false; }
  bool gate_timed_out() override { return timed_out_; }

 private:
  class FakeStream final : public Stream {
   public:
    explicit FakeStream(FakeDevice& device) : device_(device) {}
    void synchronize() override { device_.refuse_gated_wait(); }

   private:
    FakeDevice& device_;
  };
  class FakeEvent final : public Event {
   public:
    explicit FakeEvent(FakeDevice& device) : device_(device) {}
    void record(Stream&) override { at_ = device_.now; }
    void synchronize() override { device_.refuse_gated_wait(); }
    double seconds_since(const Event& start) const override { return at_ - static_cast<const FakeEvent&>(start).at_; }

   private:
    FakeDevice& device_;
    double at_ = 0;
  };

  // A real device would wait forever.
  void refuse_gated_wait() const {
    if (gate_closed) throw Error("waits for work behind a closed gate");
  }

  DeviceInfo info_;
  bool timed_out_ = false;
};

}  // namespace assay::test
