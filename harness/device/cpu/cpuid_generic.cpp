// Processors other than x86-64: what the kernel says about them.
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/names.h"

#include <sys/utsname.h>

#include <fstream>

namespace assay::cpu {

namespace {

// The value of the first line "key : value" of /proc/cpuinfo.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t start = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
  return {};
}

}  // namespace

const Processor& processor() {
  static const Processor known = [] {
    Processor found;
    utsname system{};
    if (uname(&system) == 0) found.architecture = system.machine;
    found.brand = cpuinfo("model name");
    if (const auto implementer = cpuinfo("CPU implementer"); !implementer.empty()) {
      found.vendor = arm_implementer(implementer);
      found.microarchitecture = arm_core(implementer, cpuinfo("CPU part"));
    }
    return found;
  }();
  return known;
}

const InstructionSets& instruction_sets() {
  static const InstructionSets none;
  return none;
}

}  // namespace assay::cpu
