// Processors other than x86-64: what the kernel says about them.
#include "harness/device/cpu/cpuid.h"

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

// Implementer codes of Arm's MIDR_EL1 register.
std::string vendor_of(const std::string& implementer) {
  if (implementer == "0x41") return "Arm";
  if (implementer == "0x42") return "Broadcom";
  if (implementer == "0x43") return "Cavium";
  if (implementer == "0x46") return "Fujitsu";
  if (implementer == "0x48") return "HiSilicon";
  if (implementer == "0x4e") return "NVIDIA";
  if (implementer == "0x51") return "Qualcomm";
  if (implementer == "0x61") return "Apple";
  if (implementer == "0xc0") return "Ampere";
  return {};
}

}  // namespace

const Processor& processor() {
  static const Processor known = [] {
    Processor found;
    utsname system{};
    if (uname(&system) == 0) found.architecture = system.machine;
    found.vendor = vendor_of(cpuinfo("CPU implementer"));
    found.brand = cpuinfo("model name");
    return found;
  }();
  return known;
}

const InstructionSets& instruction_sets() {
  static const InstructionSets none;
  return none;
}

}  // namespace assay::cpu
