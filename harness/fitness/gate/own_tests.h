// Tests of a gate that are no benchmarks, each in a process of its own.
#pragma once

#include "harness/fitness/gate/inspection.h"

#include <string>

namespace assay::gate {

// The audit of this machine, its GPUs, and what a quota withholds. `expect`: a file of what it should have; empty:
// none. Throws UsageError for a bad file.
Inspection inspect_machine(const std::string& expect = {});

// Whether random bytes that were written to a file in `folder`, and taken out of the page cache, are read again as they
// were; the disk may have a cache of its own. Says which bytes were not. `fault`: "flip" changes a byte, "full" limits
// the size of the file. Throws Error if the file cannot be written or read.
bool disk_holds(const std::string& folder, const std::string& fault);

}  // namespace assay::gate
