// A device's gate, open again whatever happens.
#pragma once

#include "harness/device/device.h"

namespace assay {

// Closed while it lives, or until it is opened; not at all where it is not wanted.
class Gate {
 public:
  Gate(Device& device, Stream& stream, bool wanted = true) : device_(wanted ? &device : nullptr) {
    if (device_) device_->close_gate(stream);
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() {
    if (device_) device_->open_gate();
    device_ = nullptr;
  }

 private:
  Device* device_;
};

}  // namespace assay
