// The host that a process runs on.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

// $ASSAY_HOST, the name by which a launcher of several hosts knows this one, else the kernel's host name.
std::string this_host();

// "x86_64", "aarch64": as the kernel calls it.
std::string machine_architecture();

// Of the running kernel, whatever namespaces a process is in; empty where it is not told.
std::string boot_id();
// 32 hexadecimal digits from the kernel's random numbers; throws Error if it has none.
std::string random_token();
// By this host's clock, since 1970.
std::int64_t wall_clock_ns();

}  // namespace assay
