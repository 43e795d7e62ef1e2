// What the emulation reads from its own ELF file: kernel names, and the locations of shared arrays.
#pragma once

#include <cstddef>

namespace assay::emulation {

// Sets every byte of every __shared__ array of the module.
void fill_shared_arrays(std::byte value);

}  // namespace assay::emulation
