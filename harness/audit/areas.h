// What the areas of the audit share. Only for this room: each area looks at files and reports problems by their kind's
// id; severity, meaning and fix are those of the table (harness/machine/problem_kinds.h).
#pragma once

#include "harness/audit/audit.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::audit {

// What is looked at, and when.
struct Subject {
  const Root& root;
  const Machine& machine;
  double now = 0;              // Unix seconds
  std::optional<double> boot;  // when the kernel started, Unix seconds
};

class Report {
 public:
  // A problem of the kind `id`. Another of the same kind and device only adds to what the first has seen. `meaning` and
  // `fix` replace those of the kind. Throws Error for an id that the table lacks.
  void add(std::string_view id, std::string_view device, std::string_view seen, std::string_view meaning = {},
           std::string_view fix = {});
  // Nothing if the value is empty.
  void fact(const std::string& name, std::string_view value);

  std::vector<Finding> problems;
  std::map<std::string, std::string> facts;
};

void audit_gpus(const Subject& subject, Report& report);
void audit_path(const Subject& subject, Report& report);      // from GPU to NIC
void audit_network(const Subject& subject, Report& report);   // NICs and their links
void audit_storage(const Subject& subject, Report& report);   // disks, file systems, mounts
void audit_host(const Subject& subject, Report& report);      // memory, CPUs, clock, limits, processes
void audit_software(const Subject& subject, Report& report);  // driver, libraries, the user's PyTorch
void audit_counters(const Subject& subject, Report& report);
void audit_events(const std::vector<KernelEvent>& events, Report& report);

// Whether problems of this kind are faults; not for an id that the table lacks.
bool is_fault(std::string_view id);

// Files that several areas read.

// Whether this is a container, or one may not be ruled out: other processes, devices and mounts are hidden then, so
// that what is not seen need not be missing.
bool may_be_container(const Subject& subject);
// Whether a process of that name runs; the kernel keeps 15 characters of a name.
bool process_runs(const Root& root, std::string_view name);
// Folders in which the dynamic loader looks, without a leading slash.
std::vector<std::string> library_folders(const Root& root);
// Bits per lane and lanes of a PCI device below what it and its slot can have: "8.0 of 16.0 GT/s, x4 of x16"; empty if
// not.
std::string slow_link(const Root& root, const std::string& pci);
// PCI address of a NIC ("sys/class/net/eth0", "sys/class/infiniband/mlx5_0"); empty if it is none on that bus.
std::string nic_address(const Root& root, const std::string& folder);
bool has_nvswitch(const Root& root);
// The last PCI address in a text, in the kernel's form "0000:1b:00.0"; empty if there is none.
std::string last_pci_address(std::string_view text);

}  // namespace assay::audit
