// Error counters of devices, which only grow: network and InfiniBand ports, PCIe, memory controllers, throttling of
// CPUs, file systems, GPUs. Errors that are counted while a case runs belong to its result.
#pragma once

#include "harness/machine/nvml.h"
#include "harness/machine/root.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ErrorCounter {
  std::string device;  // "eth0", "mlx5_0 port 1", "0000:1b:00.0", "mc0", "cpu"
  std::string name;    // "carrier_down", "link_downed", "aer_fatal", "ce", "ecc_uncorrected", ...
  std::uint64_t value = 0;
  bool operator==(const ErrorCounter&) const = default;
};

// The counters of a machine in the kernel's files. The list of files is made once; a reading opens them and no folder.
// Counters that are absent or unreadable are left out.
class CounterReader {
 public:
  explicit CounterReader(const Root& root);
  // Sorted by device and name.
  std::vector<ErrorCounter> read() const;
  std::size_t files() const { return sources_.size(); }

 private:
  enum class Format { number, aer };
  struct Source {
    std::string file, device, name;
    Format format = Format::number;
  };
  void find_networks();
  void find_infiniband();
  void find_pci();
  void find_memory();
  void find_throttling();
  void find_file_systems();
  // Several files may share a device and name: their sum is the counter.
  void add(std::string file, std::string device, std::string name, Format format = Format::number);

  Root root_;
  std::vector<Source> sources_;
};

// The counters of one GPU, by its PCI address.
std::vector<ErrorCounter> error_counters(const GpuErrorCounts& counts, const std::string& pci);

// Reads all counters of this machine now, those of GPUs only with `nvml`. Sorted by device and name.
std::vector<ErrorCounter> read_error_counters(const Root& root, const Nvml* nvml);

// The counters that are in both sorted lists and have grown; `value` is the increase.
std::vector<ErrorCounter> grown(const std::vector<ErrorCounter>& before, const std::vector<ErrorCounter>& after);

// Whether an error that this counter counts may have changed data or stopped a device. Otherwise the device corrected
// it or sent the data again.
bool is_uncorrected(std::string_view counter_name);

}  // namespace assay
