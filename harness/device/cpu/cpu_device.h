// The CPU as a device: this rank's CPUs, memory and steady clock.
#pragma once

#include "harness/device/device.h"

#include <memory>

namespace assay::cpu {

// The device of this rank's CPU set. Streams run inline, events read the steady clock. Memory is page-aligned, from 2
// MiB on aligned to 2 MiB with huge pages advised; it is untouched, so the caller decides which thread touches it
// first.
std::unique_ptr<Device> make_cpu_device();

}  // namespace assay::cpu
