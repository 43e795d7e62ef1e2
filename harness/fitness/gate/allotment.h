// The GPUs that a gate's job gets, and whether other jobs run on this host.
#pragma once

#include "harness/fitness/gate/decision.h"
#include "harness/machine/root.h"
#include "harness/process/process.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::gate {

struct GpuHere {
  std::string pci, uuid, name;
  bool shown = true;                     // by the driver, where it shows any; a cgroup may hide some
  bool lost = false;                     // not shown because it is broken
  std::optional<bool> mig = {};          // divided into slices; absent: unknown
  std::vector<std::string> slices = {};  // their UUIDs, as far as the driver says them
  std::size_t clients = 0;               // processes that compute on it

  static void members(auto& self, auto& io) {
    io("pci", self.pci), io("uuid", self.uuid), io("name", self.name), io("shown", self.shown);
    io("lost", self.lost), io("mig", self.mig), io("slices", self.slices), io("clients", self.clients);
  }
  std::string device() const { return pci.empty() ? uuid : pci; }  // as the audit names it
};

// A GPU, or a slice of one, on which the tests of GPUs run.
struct Target {
  std::string device;   // GpuHere::device(), and the UUID of a slice
  std::string visible;  // for CUDA_VISIBLE_DEVICES
  std::string why_not;  // why no test runs there; empty: it can
};

struct Allotment {
  bool all = true;                    // every GPU here counts: nothing names GPUs, or not all names could be mapped
  std::string source;                 // "--gpus", "SLURM_JOB_GPUS", ...; empty if nothing names GPUs
  std::vector<GpuHere> gpus;          // that count, of those here
  std::vector<std::string> slices;    // named as the job's
  std::vector<std::string> missing;   // named, but not here
  std::vector<std::string> unmapped;  // named, but it is not known what: "MIG-41b3...: its GPU is not known"
  bool none = false;                  // the launcher says that the job gets no GPU
  bool certain = false;               // the names are those of this host, so that a missing one is a fault

  // Whether GPUs here may be another job's.
  bool part(std::size_t here) const { return gpus.size() < here || !unmapped.empty(); }
  Scope scope(const std::vector<GpuHere>& here) const;
  // Where tests run: on the GPUs that count, without those that neither the driver shows nor the job names.
  std::vector<Target> targets(const std::vector<GpuHere>& here) const;
};

// "0,2-3,GPU-5fd4..." as its words, ranges expanded. Throws UsageError, which begins with `place`.
std::vector<std::string> gpu_words(const std::string& place, const std::string& text);

// `flag` is the text of --gpus; empty: from the environment. `here` in the order of PCI addresses, by which indices
// count. A slice (MIG-UUID, or MIG-GPU-UUID/GI/CI as old drivers write it) is its GPU. Throws UsageError for a bad
// flag; what the environment names and cannot be mapped makes every GPU count.
Allotment find_allotment(const std::string& flag, const Variables& environment, const std::vector<GpuHere>& here);

// Jobs of Slurm with processes on this host, by their cgroups, without `own` (may be empty): "1234".
std::vector<std::string> other_jobs(const Root& root, const std::string& own);

}  // namespace assay::gate
