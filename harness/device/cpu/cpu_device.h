// The CPU as a device: this rank's CPUs, memory and steady clock.
#pragma once

#include "harness/device/device.h"

#include <memory>

namespace assay::cpu {

// The device of this rank's CPU set; streams run inline, events read the steady clock. Its memory is page-aligned,
// 2 MiB-aligned with huge pages advised from that size on; untouched, so that the caller decides which thread touches
// it first.
std::unique_ptr<Device> make_cpu_device();

}  // namespace assay::cpu
