// How many files this process may have open.
#pragma once

#include <cstddef>

namespace assay {

// Raises the limit to `needed` as far as the hard limit allows, and no higher: some launchers loop over every possible
// descriptor. Returns the limit from now on.
std::size_t reserve_open_files(std::size_t needed);

}  // namespace assay
