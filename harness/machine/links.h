// The links of a hardware sheet by what goes over them.
#pragma once

#include "harness/machine/hardware.h"

namespace assay {

// Between devices; null if the sheet has no link.
const HardwareSheet::Link* fastest_link(const HardwareSheet& sheet);
// To the host: the fastest PCI Express link; null if none is known.
const HardwareSheet::Link* pcie_link(const HardwareSheet& sheet);

}  // namespace assay
