// Kinds of machines: figures of one kind may be samples of one figure, figures of different kinds never.
#pragma once

#include "harness/record/run_dir.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// The facts by which kinds of machines differ; facts that a run lacks are empty or absent.
struct Hardware {
  std::string instance_type;
  std::string cpu, cpu_brand;
  std::optional<double> sockets, cores, memory_bytes;
  std::optional<std::vector<std::string>> gpus;  // sorted names

  bool operator==(const Hardware&) const = default;
};

// Runs whose machines agree in all that both name, memory within 10 % (firmware and kernel count it differently).
struct MachineKind {
  std::string name;                // "p5.48xlarge", else "AMD Zen 4, 2 cores, 24 GiB, no GPU"; may be empty
  std::vector<std::size_t> runs;   // indices, never empty
  std::vector<Hardware> hardware;  // each once
};

// In the order of their first runs.
std::vector<MachineKind> machine_kinds(const std::vector<RunData>& runs);

// The kind of each run, as an index of `kinds`, which are those of all `runs`.
std::vector<std::size_t> kind_by_run(const std::vector<MachineKind>& kinds, std::size_t runs);

// Whether all of one agrees with all of the other.
bool same_kind(const MachineKind& a, const MachineKind& b);

}  // namespace assay
