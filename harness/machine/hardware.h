// Hardware sheets: what the maker says a device can do (configs/hardware), each figure with its source.
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

// Base units. A figure that the sheet does not give is absent.
struct HardwareSheet {
  struct Link {
    std::string name;             // "NVLink 4", "PCIe 5 x16"
    double bytes_per_second = 0;  // one way
  };
  std::string name;  // of the file, without .json
  std::string description;
  std::string kind;                        // gpu, cpu
  std::vector<std::string> match;          // patterns on the device's own name: "NVIDIA H200", "*EPYC 9654*"
  std::vector<std::string> pci_ids;        // "10de:2335"
  std::map<std::string, double> peak;      // dense, FLOP/s (int8: operations/s) by dtype; "f64_tensor" apart from f64
  std::optional<double> memory_bandwidth;  // B/s; of a socket for a CPU
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> tdp_watts;
  std::vector<Link> links;
  std::map<std::string, std::string> sources;  // by member: "peak", "memory_bandwidth", ...
};

// Throws UsageError that lists every error of the file with its place; a figure without a source is one.
HardwareSheet read_hardware(const std::filesystem::path& file);
// Every sheet of a folder, by name; none when it is absent.
std::vector<HardwareSheet> load_hardware(const std::filesystem::path& folder);
// The sheet whose patterns match a device's name; nothing when it is unknown.
const HardwareSheet* find_hardware(std::span<const HardwareSheet> sheets, std::string_view device_name);
const HardwareSheet* find_hardware_by_pci(std::span<const HardwareSheet> sheets, std::string_view pci_id);

// Whether `text` matches `pattern`, in which * stands for any run of characters and ? for one; case is ignored.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace assay
