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

// At least so many, or exactly so many: in a file 8, or {"exactly": 8}.
struct Amount {
  std::int64_t value = 0;
  bool exactly = false;
};

struct ExpectedPorts {
  std::optional<Amount> count = {};  // absent: at least one
  std::optional<double> rate = {};   // Gbit/s of each of them
  bool rate_exactly = false;         // not more, either
  std::string name = {};             // "mlx5_0", "mlx5_0:1", "eth0", or a pattern; empty: any
  bool without_link = false;         // they may be down
};

struct ExpectedMount {
  std::string place, source = {}, type = {};  // the last two: patterns; empty: any
  std::optional<bool> writable = {};
};

// {"schema":1, "cpu":{"sockets":2, "cores":64, "threads":128, "model":"*EPYC*", "isa":["avx512_bf16"]},
//  "memory":"512GiB", "swap":"8GiB", "numa_nodes":2,
//  "gpus":{"count":{"exactly":8}, "name":"*H100*", "link_width":16, "link_generation":5},
//  "infiniband":{"count":8, "rate":400}, "ethernet":{"count":1, "rate":100, "name":"eth*"},
//  "mounts":["/home", {"at":"/scratch", "type":"lustre", "source":"*", "writable":true}],
//  "kernel":"5.15.*", "driver":"570.*", "clock_source":"tsc"}; every member is optional.
struct Expectation {
  std::optional<Amount> sockets, cores, threads;  // cores usable by this process; threads: logical CPUs
  std::optional<std::string> model;               // pattern on the CPU's name or brand
  std::vector<std::string> isa;                   // as the kernel names them; "-" and "." read as "_"
  std::optional<std::uint64_t> memory_bytes, max_memory_bytes;
  std::optional<std::uint64_t> swap_bytes, max_swap_bytes;
  std::optional<Amount> numa_nodes;
  std::optional<Amount> gpu_count;
  std::optional<std::string> gpu_name;     // pattern, of every GPU
  std::optional<std::int64_t> link_width;  // PCI Express lanes that every GPU must have
  std::optional<std::int64_t> link_generation;
  std::vector<ExpectedPorts> infiniband, ethernet;
  std::vector<ExpectedMount> mounts;
  std::optional<std::string> kernel, driver, clock_source;  // patterns
  std::vector<std::string> left_out;  // what an nhc.conf asks and was not taken over, with its line
};

// From JSON, or from an nhc.conf (harness/machine/nhc.h) for the host below `root`. Throws UsageError that
// lists every error of the file with its place.
Expectation read_expectation(const std::filesystem::path& file, const Root& root = Root());

struct Shortfall {
  std::string what;  // the member: "cpu.cores", "gpus.link_width 0000:1b:00.0"
  std::string expected;
  std::string found;  // "unknown" if the machine does not report it, which is a shortfall too

  static void members(auto& self, auto& io) {
    io("what", self.what), io("expected", self.expected), io("found", self.found);
  }
};
// More than expected is fine unless it says exactly. Memory is what is installed, or the cgroup's limit if that is
// less; if only MemTotal is known, the 3 % that a kernel reserves are added. A GPU without a driver is named by the
// sheet that lists its PCI id.
std::vector<Shortfall> shortfalls(const Expectation& expectation, const Machine& machine,
                                  std::span<const HardwareSheet> sheets, const Root& root);
// What `file` expects and this machine lacks, and what of it was not taken over, in lines.
std::string shortfalls_text(const std::string& file, const Expectation& expectation,
                            const std::vector<Shortfall>& shortfalls);

}  // namespace assay
