// Times runs of candidates on a device without their launches.
#pragma once

#include "harness/device/gate.h"

#include <memory>

namespace assay::ops {

class TrialTimer {
 public:
  TrialTimer(Device& device, Stream& stream)
      : device_(device), stream_(stream), start_(device.make_event()), stop_(device.make_event()) {}

  // Seconds per run. Behind the device's gate, unless one has opened by itself before; a candidate's first run must not
  // be: it loads code, which could wait for the gate forever.
  template <typename Run>
  double seconds(const Run& run, int runs, bool first = false) {
    const bool gated = !first && !timed_out_;
    Gate gate(device_, stream_, gated);
    start_->record(stream_);
    for (int i = 0; i < runs; ++i) run();
    stop_->record(stream_);
    gate.open();
    stop_->synchronize();
    timed_out_ = timed_out_ || (gated && device_.gate_timed_out());
    return stop_->seconds_since(*start_) / runs;
  }

  // The result of `compare`, which times candidates. It is called again, without a gate, if one opens by itself: times
  // before and after do not compare, since the later times contain launches.
  template <typename Compare>
  auto comparison(const Compare& compare) {
    const bool gated = !timed_out_;
    auto result = compare();
    return gated && timed_out_ ? compare() : result;
  }

 private:
  Device& device_;
  Stream& stream_;
  std::unique_ptr<Event> start_, stop_;
  bool timed_out_ = false;
};

}  // namespace assay::ops
