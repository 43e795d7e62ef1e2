// The hardware that a machine should have (`assay env --expect FILE`), and what this machine lacks.
#pragma once

#include "harness/machine/hardware.h"
#include "harness/machine/machine.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay {

// {"schema":1, "cpu":{"cores":64, "model":"*EPYC*", "isa":["avx512_bf16"]}, "memory":"512GiB", "numa_nodes":2,
//  "gpus":{"count":8, "name":"*H100*", "link_width":16, "link_generation":5}}; every member is optional.
struct Expectation {
  std::optional<std::int64_t> cores;  // usable by this process
  std::optional<std::string> model;   // pattern on the CPU's name or brand
  std::vector<std::string> isa;       // as the kernel names them; "-" and "." read as "_"
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::int64_t> numa_nodes;
  std::optional<std::int64_t> gpu_count;
  std::optional<std::string> gpu_name;     // pattern, of every GPU
  std::optional<std::int64_t> link_width;  // PCI Express lanes that every GPU must have
  std::optional<std::int64_t> link_generation;
};

// Throws UsageError that lists every error of the file with its place.
Expectation read_expectation(const std::filesystem::path& file);

struct Shortfall {
  std::string what;  // the member: "cpu.cores", "gpus.link_width 0000:1b:00.0"
  std::string expected;
  std::string found;  // "unknown" if the machine does not report it, which is a shortfall too

  static void members(auto& self, auto& io) {
    io("what", self.what), io("expected", self.expected), io("found", self.found);
  }
};
// More than expected is fine. Memory is what is installed, or the cgroup's limit if that is less; if only MemTotal is
// known, the 3 % that a kernel reserves are added. A GPU without a driver is named by the sheet that lists its PCI id.
std::vector<Shortfall> shortfalls(const Expectation& expectation, const Machine& machine,
                                  std::span<const HardwareSheet> sheets);
// What `file` expects and this machine lacks, in lines.
std::string shortfalls_text(const std::string& file, const std::vector<Shortfall>& shortfalls);

}  // namespace assay
