// Hardware sheets: a device's specifications (configs/hardware), each figure with its source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// A sheet of configs/hardware, in base units. Figures that it lacks are absent.
struct HardwareSheet {
  struct Link {
    std::string name;             // "NVLink 4", "PCIe 5 x16"
    double bytes_per_second = 0;  // one way
  };
  std::string name;  // the file's name without .json
  std::string description;
  std::string kind;                    // gpu, cpu
  std::vector<std::string> match;      // patterns for the device's own name: "NVIDIA H200", "*EPYC 9654*"
  std::vector<std::string> pci_ids;    // "10de:2335"
  std::vector<std::string> sold_as;    // names in catalogues of prices: "A100-80GB"
  std::map<std::string, double> peak;  // dense, FLOP/s (int8: operations/s) by dtype; "f64_tensor" in addition to f64
  std::optional<double> memory_bandwidth;  // B/s; for a CPU, per socket
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> tdp_watts;
  std::vector<Link> links;
  std::map<std::string, std::string> sources;  // one for each member: "peak", "memory_bandwidth", ...
};

// Throws UsageError that lists every error of the file with its place; a figure without a source is an error.
HardwareSheet read_hardware(const std::filesystem::path& file);
// The sheets of configs/hardware, by name, read once in a process. Throws as read_hardware() does.
const std::vector<HardwareSheet>& shipped_hardware();
// A shipped sheet by name, or a file. Throws UsageError with the nearest names if there is none.
HardwareSheet hardware_named(const std::string& word);
// The sheet whose patterns match a device's name; null if there is none.
const HardwareSheet* find_hardware(std::span<const HardwareSheet> sheets, std::string_view device_name);
const HardwareSheet* find_hardware_by_pci(std::span<const HardwareSheet> sheets, std::string_view pci_id);

// Bytes a second, one way, of a PCI Express link of so many lanes and GT/s, after its line code (PCI Express Base
// Specification: 8b/10b up to 5 GT/s, then 128b/130b, FLITs of 242 in 256 bytes from 64 GT/s on).
double pcie_rate(double lanes, double gigatransfers);

// Whether `text` matches `pattern`, where * matches any characters and ? a single one; case is ignored.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace assay
