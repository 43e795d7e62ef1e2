// The devices that tests run on, created once per process; tests of missing devices are skipped, and the program's last
// output counts them with the reason.
#pragma once

#include "harness/device/device.h"

#include <memory>
#include <string>

namespace assay::test {

// Null, with the reason, if this machine has no such device; the current test then counts as skipped.
std::shared_ptr<Device> device_of(DeviceKind kind, std::string& why_not);

}  // namespace assay::test
