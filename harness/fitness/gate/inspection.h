// What a gate asks a process of its own, `assay gate-test audit`, about the machine.
#pragma once

#include "harness/fitness/gate/allotment.h"
#include "harness/machine/audited.h"

#include <vector>

namespace assay::gate {

struct Inspection {
  AuditedMachine audit;
  std::vector<GpuHere> gpus = {};
  double withheld_cpus = 0;  // by a quota

  static void members(auto& self, auto& io) {
    io.required("audit", self.audit), io.required("gpus", self.gpus), io("withheld_cpus", self.withheld_cpus);
  }
};

}  // namespace assay::gate
