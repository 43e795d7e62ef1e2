// The next batch on its way to a device with memory of its own, while the device runs the step before.
#pragma once

#include "harness/device/device.h"

#include <cstddef>
#include <memory>

namespace assay::nn {

// Pinned host memory, copied on a stream of its own into memory of the device that no step reads; from there a step
// takes it at the device's own speed.
class InputsAhead {
 public:
  InputsAhead(Device& device, std::size_t bytes)
      : device_(device),
        bytes_(bytes),
        host_(device.allocate(bytes, Memory::pinned)),
        landing_(device.allocate(bytes)),
        stream_(device.make_stream()),
        landed_(device.make_event()),
        taken_(device.make_event()) {}

  std::byte* host() const { return host_.as<std::byte>(); }
  // Before host() is written to.
  void wait_for_host_copy() {
    if (sent_) landed_->synchronize();
  }
  void send() {
    if (taken_once_) stream_->wait(*taken_);
    device_.copy(landing_.data(), host_.data(), bytes_, *stream_);
    landed_->record(*stream_);
    sent_ = true;
  }
  // What was sent, in the order of `compute`.
  void take(void* to, Stream& compute) {
    compute.wait(*landed_);
    device_.copy(to, landing_.data(), bytes_, compute);
    taken_->record(compute);
    taken_once_ = true;
  }

 private:
  Device& device_;
  std::size_t bytes_;
  Buffer host_, landing_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> landed_, taken_;
  bool sent_ = false, taken_once_ = false;
};

}  // namespace assay::nn
