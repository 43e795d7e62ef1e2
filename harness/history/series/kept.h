// The analysis of a store, kept in it from one check to the next.
#pragma once

#include "harness/history/series/tracked.h"

#include <span>
#include <string>

namespace assay::history {

// Analyses all nights. Nights before the last one are analysed only if `kept` is damaged or belongs to other values or
// options. `kept` becomes the bytes to keep, and stays as it was if they are still right. The last night is never kept,
// as more of its runs may come.
Analysis analyse_from(std::string& kept, std::span<const TrackedSeries> series, std::span<const TrackedGroup> groups,
                      const Options& options);

// The bytes to keep of an analysis of all nights up to `last`: the analysis, its values and options, and a checksum.
std::string bytes_to_keep(const Analysis& analysis, Night last, std::span<const TrackedSeries> series,
                          std::span<const TrackedGroup> groups, const Options& options);

// The same with what the store holds, and there afterwards. `from_scratch` takes nothing from it.
Analysis analyse_store(store::Store& store, const store::Contents& contents, std::span<const TrackedSeries> series,
                       std::span<const TrackedGroup> groups, const Options& options, bool from_scratch = false);

}  // namespace assay::history
