// The devices that tests run on, made once a process; what a machine lacks is skipped, and the program's end says how
// much that was and why.
#pragma once

#include "harness/device/device.h"

#include <memory>
#include <string>

namespace assay::test {

// Null, with the reason, where this machine has no such device; the current test is then counted as skipped for it.
std::shared_ptr<Device> device_of(DeviceKind kind, std::string& why_not);

}  // namespace assay::test
