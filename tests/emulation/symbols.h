// What the emulation reads of the ELF file that it is in: names of kernels, and where their shared arrays lie.
#pragma once

#include <cstddef>

namespace assay::emulation {

// Every byte of every __shared__ array of the module.
void fill_shared_arrays(std::byte value);

}  // namespace assay::emulation
