// GPUs: which are missing, what their driver counts, how they are set up.
#include "harness/audit/areas.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

namespace assay::audit {

namespace {

// A job's cgroup may hide a GPU's device file from it, and then the management library does not list the GPU.
bool hidden_from_us(const Root& root, const std::string& pci) {
  if (!root.real()) return false;
  const auto information = root.text("proc/driver/nvidia/gpus/" + pci + "/information").value_or("");
  const auto minor = field(information, "Device Minor");
  if (!minor) return true;  // not known
  const int file = ::open(("/dev/nvidia" + *minor).c_str(), O_RDWR | O_CLOEXEC);
  if (file >= 0) ::close(file);
  return file < 0 && (errno == EPERM || errno == EACCES || errno == ENOENT);
}

// A device that has left the bus reads as ones.
bool reads_as_ones(const Root& root, const std::string& pci) {
  const auto config = root.text("sys/bus/pci/devices/" + pci + "/config");
  return config && config->size() >= 4 && config->substr(0, 4) == "\xff\xff\xff\xff";
}

void find_missing(const Subject& subject, Report& report) {
  const auto& [root, machine, now, boot] = subject;
  const auto with_driver = root.list("proc/driver/nvidia/gpus");
  const bool any_managed = std::ranges::any_of(machine.gpus, &GpuPart::managed);
  const bool in_container = may_be_container(subject);  // it may be given only some
  std::map<std::string, int> of_kind;
  for (const GpuPart& gpu : machine.gpus) {
    const bool on_bus = root.exists("sys/bus/pci/devices/" + gpu.pci);
    const bool listed = std::ranges::find(with_driver, gpu.pci) != with_driver.end();
    if (on_bus) ++of_kind[gpu.id];
    if (gpu.lost || reads_as_ones(root, gpu.pci))
      report.add("gpu-lost", gpu.pci, gpu.lost ? "the driver lost it" : "its configuration reads as ones");
    else if (on_bus && !in_container && !listed && !with_driver.empty() && gpu.driver != "vfio-pci")
      report.add("gpu-missing", gpu.pci, "on the PCI bus, not with the driver");
    else if (listed && !gpu.managed && any_managed && !hidden_from_us(root, gpu.pci))
      report.add("gpu-missing", gpu.pci, "with the driver, not with its management library");
    else if (!on_bus && root.exists("sys/bus/pci/devices") && !in_container)
      report.add("gpu-missing", gpu.pci, "with the management library, not on the PCI bus");
    else if (gpu.driver.empty() || gpu.driver == "nouveau")
      report.add(is_data_centre_gpu(gpu.id) ? "gpu-no-driver" : "gpu-driver", gpu.pci,
                 gpu.driver.empty() ? "no driver is bound" : "driver " + gpu.driver);
  }
  for (const std::string& pci : with_driver)
    if (root.exists("sys/bus/pci/devices") && !root.exists("sys/bus/pci/devices/" + pci) && !in_container)
      report.add("gpu-missing", pci, "with the driver, not on the PCI bus");
  // Boards with NVSwitches are sold with 4, 8 or 16 GPUs (HGX and DGX). A hypervisor may pass on some of them.
  static const std::set<int> usual = {4, 8, 16};
  const bool named = std::ranges::any_of(report.problems, [](const Finding& one) { return one.id == "gpu-missing"; });
  for (const auto& [id, count] : of_kind)
    if (!named && has_nvswitch(root) && machine.system.hypervisor.empty() && !in_container && !usual.contains(count))
      report.add("gpu-count", "", fmt::format("{} GPUs of kind {}, with NVSwitches", count, id));
  if (!any_managed && !with_driver.empty() && !machine.gpus.empty())
    report.add("no-management-library", "", fmt::format("{} GPUs with the driver", with_driver.size()));
}

void add_count(Report& report, const char* problem, const GpuPart& gpu, std::optional<std::uint64_t> count,
               std::uint64_t at_least, const char* what) {
  if (count.value_or(0) >= at_least) report.add(problem, gpu.pci, fmt::format("{} {}", *count, what));
}

void judge(const Root& root, const GpuPart& gpu, Report& report) {
  const auto& errors = gpu.errors;
  add_count(report, "ecc-uncorrected", gpu, errors.ecc_uncorrected, 1,
            "uncorrected ECC errors since the driver was loaded");
  add_count(report, "remap-pending", gpu, errors.remap_pending, 1, "rows to be remapped");
  add_count(report, "remap-failure", gpu, errors.remap_failures, 1, "rows not remapped");
  // A bank has eight spare rows (NVIDIA's GPU Memory Error Management).
  add_count(report, "rows-remapped", gpu, errors.rows_remapped, 8, "rows remapped since manufacture");
  add_count(report, "ecc-corrected", gpu, errors.ecc_corrected, 1000,
            "corrected ECC errors since the driver was loaded");
  add_count(report, "nvlink-errors", gpu, errors.nvlink_errors, 1, "NVLink errors since the driver was loaded");
  add_count(report, "pcie-replays", gpu, errors.pcie_replays, 1000, "PCI Express replays since the driver was loaded");
  constexpr double hot = 87;  // data-centre GPUs slow down between 87 and 95 degrees
  if (gpu.temperature && *gpu.temperature >= hot)
    report.add("gpu-hot", gpu.pci, fmt::format("{:.0f} degrees Celsius", *gpu.temperature));
  const auto slot_width = lanes(root.integer("sys/bus/pci/devices/" + gpu.pci + "/../max_link_width"));
  if (gpu.link_width && gpu.max_link_width && *gpu.link_width < *gpu.max_link_width &&
      *gpu.link_width < slot_width.value_or(*gpu.max_link_width))
    report.add("gpu-link-width", gpu.pci, fmt::format("x{} of x{}", *gpu.link_width, *gpu.max_link_width));
}

}  // namespace

void audit_gpus(const Subject& subject, Report& report) {
  find_missing(subject, report);
  std::map<std::string, int> names;
  std::map<std::string, std::set<std::string>> versions, active;
  for (const GpuPart& gpu : subject.machine.gpus) {
    judge(subject.root, gpu, report);
    if (gpu.slot_link_speed && gpu.max_link_speed && *gpu.slot_link_speed < *gpu.max_link_speed &&
        subject.machine.system.hypervisor.empty())
      report.add("gpu-slot", gpu.pci,
                 fmt::format("slot {} GT/s, GPU {} GT/s", *gpu.slot_link_speed, *gpu.max_link_speed));
    const std::string& name = gpu.name.empty() ? gpu.id : gpu.name;
    ++names[name];
    if (!gpu.vbios.empty()) versions[name].insert(gpu.vbios);
    if (gpu.nvlinks_active) active[name].insert(std::to_string(*gpu.nvlinks_active));
  }
  for (const auto& [name, found] : versions) report.fact("vbios " + name, joined(found));
  for (const auto& [name, found] : active) report.fact("nvlinks " + name, joined(found));
  for (const auto& [name, count] : names) report.fact("gpus " + name, std::to_string(count));
}

}  // namespace assay::audit
