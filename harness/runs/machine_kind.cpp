#include "harness/runs/machine_kind.h"

#include "harness/json/json.h"
#include "harness/runs/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace assay {

namespace {

Hardware hardware_of(const RunData& run, const RunMachine& machine) {
  const Json& environment = member(run.run, "/environment");
  Hardware hardware{.instance_type = machine.instance_type,
                    .cpu = machine.cpu,
                    .cpu_brand = text_member(environment, "/cpu/brand"),
                    .sockets = number_member(environment, "/cpu/sockets"),
                    .cores = number_member(environment, "/cpu/cores"),
                    .memory_bytes = number_member(environment, "/memory/installed_bytes"),
                    .gpus = {}};
  if (!hardware.memory_bytes) hardware.memory_bytes = number_member(environment, "/memory/total_bytes");
  if (const Json& gpus = member(environment, "/gpus"); gpus.is_array()) {
    hardware.gpus.emplace();
    for (const Json& gpu : gpus) hardware.gpus->push_back(text_member(gpu, "/name"));
    std::ranges::sort(*hardware.gpus);
  }
  return hardware;
}

bool agree(const Hardware& a, const Hardware& b) {
  const auto known = [](const std::string& one, const std::string& other) { return !one.empty() && !other.empty(); };
  const auto differ = [](const auto& one, const auto& other) { return one && other && *one != *other; };
  if (known(a.instance_type, b.instance_type) && a.instance_type != b.instance_type) return false;
  // The brand is the chip's own name; the other is what a version of Assay makes of it.
  const bool brands = known(a.cpu_brand, b.cpu_brand);
  if (brands ? a.cpu_brand != b.cpu_brand : known(a.cpu, b.cpu) && a.cpu != b.cpu) return false;
  if (differ(a.sockets, b.sockets) || differ(a.cores, b.cores) || differ(a.gpus, b.gpus)) return false;
  constexpr double slack = 0.1;
  return !a.memory_bytes || !b.memory_bytes ||
         std::abs(*a.memory_bytes - *b.memory_bytes) <= slack * std::max(*a.memory_bytes, *b.memory_bytes);
}

bool agree(const MachineKind& kind, const Hardware& hardware) {
  return std::ranges::all_of(kind.hardware, [&](const Hardware& known) { return agree(known, hardware); });
}

}  // namespace

std::vector<MachineKind> machine_kinds(const std::vector<RunData>& runs) {
  std::vector<MachineKind> kinds;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunMachine machine = machine_of(runs[i]);
    Hardware hardware = hardware_of(runs[i], machine);
    auto kind = std::ranges::find_if(kinds, [&](const MachineKind& one) { return agree(one, hardware); });
    if (kind == kinds.end()) {
      std::string name = machine.instance_type.empty() ? machine.name : machine.instance_type;
      if (std::ranges::any_of(kinds, [&](const MachineKind& one) { return one.name == name; }))
        name += fmt::format(" ({})", kinds.size() + 1);
      kind = kinds.insert(kind, {std::move(name), {}, {}});
    }
    kind->runs.push_back(i);
    if (std::ranges::find(kind->hardware, hardware) == kind->hardware.end())
      kind->hardware.push_back(std::move(hardware));
  }
  return kinds;
}

std::vector<std::size_t> kind_by_run(const std::vector<MachineKind>& kinds, std::size_t runs) {
  std::vector<std::size_t> by_run(runs);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (const std::size_t run : kinds[kind].runs) by_run[run] = kind;
  return by_run;
}

bool same_kind(const MachineKind& a, const MachineKind& b) {
  return std::ranges::all_of(b.hardware, [&](const Hardware& hardware) { return agree(a, hardware); });
}

}  // namespace assay
