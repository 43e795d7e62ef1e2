// RAII for a device's gate: it always opens again.
#pragma once

#include "harness/device/device.h"

namespace assay {

// Closes the gate until open() or destruction; does nothing if not wanted.
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
