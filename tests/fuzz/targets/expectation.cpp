// What a machine should have, as JSON or as an nhc.conf: it is refused with its place, or compared with two machines,
// one of which has nothing.
#include "harness/machine/expectation.h"
#include "harness/machine/nhc.h"
#include "tests/fuzz/fuzz.h"

#include <fstream>

namespace assay::fuzz {

namespace {

// One whose parts are partly what they should be.
Machine some_machine() {
  Machine machine;
  machine.cpu.sockets = 2;
  machine.cpu.cores = 8;
  machine.cpu.usable_cores = 6;
  machine.cpu.quota_cpus = 4;
  machine.cpu.online = {0, 1, 2, 3};
  machine.cpu.name = "Intel Emerald Rapids";
  machine.cpu.brand = "Intel(R) Xeon(R) Platinum 8592+";
  machine.memory.total = std::uint64_t{60} << 30;
  machine.memory.installed = std::uint64_t{64} << 30;
  machine.memory.limit = std::uint64_t{32} << 30;
  machine.memory.swap_total = 0;
  machine.gpus.resize(2);
  machine.gpus[0].pci = "0000:1b:00.0";
  machine.gpus[0].name = "NVIDIA H100 80GB HBM3";
  machine.gpus[0].link_width = 8;
  machine.gpus[0].link_speed = 16;
  machine.gpus[0].max_link_speed = machine.gpus[0].slot_link_speed = 32;
  machine.gpus[1].id = "10de:2330";
  machine.system.kernel = "6.8.0-45-generic";
  machine.system.nvidia_driver = "570.86.15";
  return machine;
}

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

Root some_root() {
  const std::filesystem::path root = folder() / "root";
  write(root / "proc/mounts", "filer:/home /home nfs4 ro 0 0\n/dev/nvme1n1 /scratch xfs rw 0 0\n");
  write(root / "proc/sys/kernel/hostname", "n1.cluster\n");
  for (const auto& [port, state, rate] : {std::array{"mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)"},
                                          std::array{"mlx5_1", "1: DOWN", "10 Gb/sec (4X SDR)"}}) {
    const std::filesystem::path ports = root / "sys/class/infiniband" / port / "ports/1";
    write(ports / "state", state);
    write(ports / "phys_state", "5: LinkUp");
    write(ports / "rate", rate);
    write(ports / "link_layer", "InfiniBand");
  }
  return Root(root);
}

}  // namespace

void expectation(std::string_view input) {
  static const MemoryFile file(folder() / "expected.json");
  static const Root nothing(folder()), something = some_root();
  static const Machine machine = some_machine();
  file.write(input);
  if (is_nhc(input))
    for (const std::string& line : read_nhc(input, "nhc.conf", "n1").left_out) expect_message(line, "nhc.conf:");
  Expectation expected;
  if (!accepts(file.path(), [&] { expected = read_expectation(file.path(), something); })) return;
  for (const auto& all : {shortfalls(expected, Machine(), {}, nothing), shortfalls(expected, machine, {}, something)}) {
    for (const Shortfall& one : all)
      expect(!one.what.empty() && !one.expected.empty() && !one.found.empty(), "a shortfall that does not say what");
    (void)shortfalls_text("expected.json", expected, all);
    expect(findings_of(expected, all).size() == all.size() + expected.left_out.size(),
           "a shortfall that is no finding");
  }
}

}  // namespace assay::fuzz
