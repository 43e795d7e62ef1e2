// The GPUs that a gate's job gets, and whether other jobs run on this host.
#pragma once

#include "harness/gate/decision.h"
#include "harness/hosts/process.h"
#include "harness/machine/root.h"

#include <string>
#include <vector>

namespace assay::gate {

struct GpuHere {
  std::string pci, uuid, name;
};

struct Allotment {
  bool all = true;                   // no launcher and no flag names GPUs
  std::string source;                // "--gpus", "SLURM_JOB_GPUS", ...; empty if all
  std::vector<GpuHere> gpus;         // that the job gets, of those here
  std::vector<std::string> missing;  // named, but not here
  bool certain = false;              // the names are those of this host, so that a missing one is a fault

  bool part(std::size_t here) const { return !all && gpus.size() < here; }
  Scope scope() const;
};

// "0,2-3,GPU-5fd4..." as its words, ranges expanded. Throws UsageError, which begins with `place`.
std::vector<std::string> gpu_words(const std::string& place, const std::string& text);

// `flag` is the text of --gpus; empty: from the environment. `here` in the order of PCI addresses, by which indices
// count. Throws UsageError for a bad flag; what it cannot read in the environment it ignores.
Allotment find_allotment(const std::string& flag, const Variables& environment, const std::vector<GpuHere>& here);

// Jobs of Slurm with processes on this host, by their cgroups, without `own` (may be empty): "1234".
std::vector<std::string> other_jobs(const Root& root, const std::string& own);

}  // namespace assay::gate
