// The hardware that a machine should have (`assay env --expect FILE`), and what this machine lacks.
#pragma once

#include "harness/json/fwd.h"
#include "harness/machine/finding.h"
#include "harness/machine/hardware.h"
#include "harness/machine/machine.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// At least so many, or exactly so many: in a file 8, or {"exactly": 8}.
struct Amount {
  std::int64_t value = 0;
  bool exactly = false;
};

// A link of PCI Express must have at least so many lanes, and at least that generation.
struct ExpectedLink {
  std::optional<std::int64_t> width = {}, generation = {};
  // "x16 gen5"; empty if neither is known.
  std::string text() const;
};

struct ExpectedPorts {
  std::optional<Amount> count = {};  // absent: at least one
  std::optional<double> rate = {};   // Gbit/s of each of them
  bool rate_exactly = false;         // not more, either
  std::string name = {};             // "mlx5_0", "mlx5_0:1", "eth0", or a pattern; empty: any
  bool without_link = false;         // they may be down
  // Rails are asked for these, too. An empty pattern matches everything.
  std::string board_id = {}, state = {}, firmware = {};
  ExpectedLink link = {};
};

struct ExpectedMount {
  std::string place, source = {}, type = {};  // the last two: patterns; empty: any
  std::optional<bool> writable = {};
};

// {"schema":1, "cpu":{"sockets":2, "cores":64, "threads":128, "model":"*EPYC*", "isa":["avx512_bf16"]},
//  "cpus":128, "memory":"512GiB", "swap":{"exactly":"8GiB"}, "numa_nodes":2, "gpudirect":true,
//  "gpus":{"count":{"exactly":8}, "name":"*H100*", "pcie":"x16 gen5", "nvlinks_active":18, "driver":"570.*",
//          "vbios":"96.00.*", "link_width":16, "link_generation":5},
//  "rails":[{"board_id":"MT_0000000838", "count":8, "rate":"400 Gb/s", "state":"ACTIVE", "pcie":"x16 gen5",
//            "firmware":"28.39.*", "name":"mlx5_*"}],
//  "infiniband":{"count":8, "rate":400}, "ethernet":{"count":1, "rate":100, "name":"eth*"},
//  "mounts":["/home", {"at":"/scratch", "type":"lustre", "source":"*", "writable":true}],
//  "kernel":"5.15.*", "driver":"570.*", "clock_source":"tsc", "bios":"2.1*"}; every member is optional.
struct Expectation {
  std::optional<Amount> sockets, cores, threads;  // cores usable by this process; threads: logical CPUs
  std::optional<Amount> cpus;                     // as threads
  std::optional<std::string> model;               // pattern on the CPU's name or brand
  std::vector<std::string> isa;                   // as the kernel names them; "-" and "." read as "_"
  std::optional<std::uint64_t> memory_bytes, max_memory_bytes;
  std::optional<std::uint64_t> swap_bytes, max_swap_bytes;
  std::optional<Amount> numa_nodes;
  std::optional<Amount> gpu_count;
  std::optional<std::string> gpu_name;     // pattern, of every GPU
  std::optional<std::int64_t> link_width;  // PCI Express lanes that every GPU must have
  std::optional<std::int64_t> link_generation;
  ExpectedLink gpu_link;
  std::optional<Amount> nvlinks_active;  // of every GPU
  std::optional<std::string> gpu_driver, vbios;
  std::optional<bool> gpudirect;  // whether NICs reach the memory of GPUs
  std::vector<ExpectedPorts> infiniband, ethernet, rails;
  std::vector<ExpectedMount> mounts;
  std::optional<std::string> kernel, driver, clock_source, bios;  // patterns
  std::vector<std::string> left_out;  // what an nhc.conf asks and was not taken over, with its line
};

// From JSON, or from an nhc.conf (harness/machine/nhc.h) for the host below `root`. `source` names the file. Throws
// UsageError that lists every error of the file with its place.
Expectation read_expectation(std::string_view text, const std::string& source, const Root& root = Root());
Expectation read_expectation(const std::filesystem::path& file, const Root& root = Root());
// The file's text. Throws UsageError if it cannot be read or has more than 100 kB.
std::string expectation_text(const std::filesystem::path& file);

struct Shortfall {
  std::string what;  // the member: "cpu.cores", "gpus.link_width 0000:1b:00.0"
  std::string expected;
  std::string found;        // "unknown" if the machine does not report it
  std::string device = {};  // the part, as findings name it; empty: the host
  bool unread = false;      // not known, so that nothing is judged

  static void members(auto& self, auto& io) {
    io("what", self.what), io("expected", self.expected), io("found", self.found), io.sparse("device", self.device);
  }
};
// What this machine lacks or does not report, in the order of the members. More than expected is fine unless it says
// exactly. Memory is what is installed, or the cgroup's limit if that is less; if only MemTotal is known, the 3 % that
// a kernel reserves are added. A GPU without a driver is named by the sheet that lists its PCI id. Of ports of a rail,
// as many as are counted must be as expected, or all if there is no count; the others are named one by one.
std::vector<Shortfall> shortfalls(const Expectation& expectation, const Machine& machine,
                                  std::span<const HardwareSheet> sheets, const Root& root);
// The same as problems of an audit: faults, and `expected-unread` for what could not be judged or was not taken over.
std::vector<Finding> findings_of(const Expectation& expectation, const std::vector<Shortfall>& shortfalls);
// What `file` expects and this machine lacks, and what of it was not judged or not taken over, in lines.
std::string shortfalls_text(const std::string& file, const Expectation& expectation,
                            const std::vector<Shortfall>& shortfalls);

// This machine as an expectation: what one bought like it should have. It holds on this machine.
Json inventory_of(const Machine& machine, const Root& root);

}  // namespace assay
