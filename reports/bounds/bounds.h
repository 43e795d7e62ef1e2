// What a machine's parts allow, and where its figures lie on that scale: from its inventory, from its hardware sheet,
// or from peaks that the same run measured, before or after the figure.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/bounds/parts.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report {

// The most that a part allows, in base units.
struct Bound {
  double value = 0;
  std::string source;  // "8 channels x 4800 MT/s x 8 bytes (EDAC, SMBIOS)"
};
// A bound, or why it is unknown: "channels unknown: the hypervisor (KVM) hides them".
struct BoundOrWhy {
  std::optional<Bound> bound = {};
  std::string why = {};
};

// B/s of a host's memory: EDAC's channels at their configured rate, else the sheet's bandwidth for the channels that
// have DIMMs. Unknown on virtual machines and on parts of one.
BoundOrWhy memory_bound(const RunData& run, const Record& record);

// Where a figure lies between nothing and what its parts allow.
struct BoundShare {
  std::optional<Bound> bound = {};    // in the metric's unit; absent: no part of the machine bounds it, or unknown
  std::string why = {};               // why it is unknown; empty if nothing bounds it
  std::optional<double> share = {};   // of the bound
  const UsualShare* usual = nullptr;  // of the bound
  bool of_memory = false;             // a matrix product that the measured memory bandwidth bounds

  // Below the usual share by more than 3 %.
  bool unusual() const;
  // Also: below half of a bound without a usual share. Never praised.
  bool low() const;
};
// The products' bound is their peak, or what the measured memory bandwidth allows for operands read once, if that is
// less; of training, the peak of its precision; of the family `peak`, vector width x cores x clock; of streams from
// memory, memory_bound(); of copies to a GPU, its link; of collectives over hosts, the network ports.
BoundShare bound_share_of(const Entry& entry, const Metric& metric);

// A line for each part of the machine of the run: what it allows, or why that is unknown.
struct PartLine {
  std::string part;    // "memory"
  std::string allows;  // "460.8 GB/s"; empty: unknown
  std::string source;  // or why it is unknown
};
std::vector<PartLine> part_lines(const RunData& run);
// "the hypervisor (KVM) hides the memory channels and the clock"; empty on bare metal.
std::string hidden_text(const RunData& run);

struct Section;  // reports/model/document.h
// "What the parts allow", a table per machine.
std::vector<Section> part_sections(const RunSet& runs);

}  // namespace assay::report
