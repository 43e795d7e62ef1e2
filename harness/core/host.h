// The host that this process runs on.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

// $ASSAY_HOST (set by a multi-host launcher to its own name for this host), else the kernel's host name.
std::string this_host();

// "x86_64", "aarch64": as the kernel calls it.
std::string machine_architecture();

// Identifies this boot of the kernel, whatever namespaces the process is in; empty if unknown.
std::string boot_id();
// 32 hexadecimal digits from the kernel's random numbers; throws Error if it has none.
std::string random_token();
// Nanoseconds since 1970 by this host's clock.
std::int64_t wall_clock_ns();

}  // namespace assay
