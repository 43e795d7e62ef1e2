// nvml.json: what a driver's management library reported, as a file beside another machine's files.
#include "harness/json/json.h"
#include "harness/machine/machine.h"

#include <algorithm>
#include <array>

namespace assay {

namespace {

constexpr std::int64_t max_integer = std::int64_t{1} << 53;

void read_device(const Cursor& device, Machine& machine) {
  static const std::array<std::string, 22> names = {"pci",
                                                    "uuid",
                                                    "name",
                                                    "serial",
                                                    "vbios",
                                                    "nvlinks_active",
                                                    "ecc",
                                                    "mig",
                                                    "slices",
                                                    "persistence",
                                                    "power_limit",
                                                    "default_power_limit",
                                                    "remap_pending",
                                                    "remap_failures",
                                                    "ecc_uncorrected",
                                                    "ecc_corrected",
                                                    "rows_remapped",
                                                    "nvlink_errors",
                                                    "pcie_replays",
                                                    "temperature",
                                                    "throttle_reasons",
                                                    "lost"};
  if (!device.object()) return;
  device.only(names);
  const auto text = [&](const char* name) {
    const auto found = device.find(name);
    return found ? found->text().value_or("") : std::string();
  };
  const auto flag = [&](const char* name) {
    const auto found = device.find(name);
    return found ? found->flag() : std::nullopt;
  };
  const auto count = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto found = device.find(name);
    const auto value = found ? found->integer(0, max_integer) : std::nullopt;
    return value ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
  };
  const auto number = [&](const char* name) {
    const auto found = device.find(name);
    return found ? found->number(-1000, 1e6) : std::nullopt;
  };
  const auto pci = device.need("pci");
  const auto address = pci ? pci->text().value_or("") : "";
  auto gpu = std::ranges::find(machine.gpus, address, &GpuPart::pci);
  if (gpu == machine.gpus.end()) {
    gpu = machine.gpus.insert(gpu, GpuPart());
    gpu->pci = address;
  }
  if (const auto name = text("name"); !name.empty()) gpu->name = name;
  if (const auto uuid = text("uuid"); !uuid.empty()) gpu->uuid = uuid;
  if (const auto vbios = text("vbios"); !vbios.empty()) gpu->vbios = vbios;
  if (const auto active = count("nvlinks_active")) gpu->nvlinks_active = static_cast<std::int64_t>(*active);
  gpu->driver = "nvidia";
  gpu->managed = true;
  gpu->lost = flag("lost").value_or(false);
  gpu->ecc = flag("ecc");
  gpu->mig = flag("mig");
  if (const auto slices = device.find("slices"))
    for (const Cursor& slice : slices->elements()) gpu->slices.push_back(slice.text().value_or(""));
  gpu->persistence = flag("persistence");
  gpu->power_limit = number("power_limit");
  gpu->default_power_limit = number("default_power_limit");
  gpu->temperature = number("temperature");
  gpu->throttle_reasons = count("throttle_reasons");
  gpu->errors.ecc_corrected = count("ecc_corrected");
  gpu->errors.ecc_uncorrected = count("ecc_uncorrected");
  gpu->errors.remap_pending = count("remap_pending");
  gpu->errors.remap_failures = count("remap_failures");
  gpu->errors.rows_remapped = count("rows_remapped");
  gpu->errors.nvlink_errors = count("nvlink_errors");
  gpu->errors.pcie_replays = count("pcie_replays");
}

}  // namespace

void add_nvml_file(const Root& root, Machine& machine) {
  const auto path = root.path() / "nvml.json";
  if (!root.exists("nvml.json")) return;
  static const std::array<std::string, 3> names = {"driver_version", "cuda_version", "devices"};
  const Json json = read_json(path);
  Problems problems(path.string());
  const Cursor file(json, problems);
  if (file.object()) {
    file.only(names);
    if (const auto version = file.find("driver_version"); version && machine.system.nvidia_driver.empty())
      machine.system.nvidia_driver = version->text().value_or("");
    if (const auto version = file.find("cuda_version")) machine.system.nvidia_cuda = version->text().value_or("");
    if (const auto devices = file.find("devices"))
      for (const Cursor& device : devices->elements()) read_device(device, machine);
  }
  problems.raise();
}

}  // namespace assay
