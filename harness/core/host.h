// The host that a process runs on.
#pragma once

#include <string>

namespace assay {

// $ASSAY_HOST, the name by which a launcher of several hosts knows this one, else the kernel's host name.
std::string this_host();

// "x86_64", "aarch64": as the kernel calls it.
std::string machine_architecture();

}  // namespace assay
