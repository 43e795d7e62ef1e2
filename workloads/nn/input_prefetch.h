// Copies the next batch to a device with its own memory while the device runs the current step.
#pragma once

#include "harness/device/device.h"

#include <cstddef>
#include <memory>

namespace assay::nn {

// Pinned host memory, copied on a separate stream into a device buffer that no step reads. A step then copies it to its
// inputs at device speed.
class InputPrefetch {
 public:
  InputPrefetch(Device& device, std::size_t bytes)
      : device_(device),
        bytes_(bytes),
        host_(device.allocate(bytes, Memory::pinned)),
        landing_(device.allocate(bytes)),
        stream_(device.make_stream()),
        landed_(device.make_event()),
        received_(device.make_event()) {}

  std::byte* host() const { return host_.as<std::byte>(); }
  // Call before writing to host().
  void wait_for_host_copy() {
    if (sent_) landed_->synchronize();
  }
  void send() {
    if (received_once_) stream_->wait(*received_);
    device_.copy(landing_.data(), host_.data(), bytes_, *stream_);
    landed_->record(*stream_);
    sent_ = true;
  }
  // Copies what was sent to `to`, as work on `compute`.
  void receive(void* to, Stream& compute) {
    compute.wait(*landed_);
    device_.copy(to, landing_.data(), bytes_, compute);
    received_->record(compute);
    received_once_ = true;
  }

 private:
  Device& device_;
  std::size_t bytes_;
  Buffer host_, landing_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> landed_, received_;
  bool sent_ = false, received_once_ = false;
};

}  // namespace assay::nn
