// The analysis of a store, kept in it from one check to the next.
#pragma once

#include "reports/history/tracked.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::history {

// Analyses all nights; those before the last one only if what `kept` holds is damaged, or not of these values and
// options. `kept` becomes what to keep, and stays as it was if that is still right. The last night is never part of
// what is kept, as more runs of it may come.
Analysis analyse_from(std::string& kept, std::span<const TrackedSeries> series, std::span<const TrackedGroup> groups,
                      const Options& options);

// What to keep of an analysis of all nights up to `last`: it, the values and options that it rests on, a checksum.
std::string bytes_to_keep(const Analysis& analysis, Night last, std::span<const TrackedSeries> series,
                          std::span<const TrackedGroup> groups, const Options& options);

// The same with what the store holds, and there afterwards. `from_scratch` takes nothing from it.
Analysis analyse_store(store::Store& store, const store::Contents& contents, std::span<const TrackedSeries> series,
                       std::span<const TrackedGroup> groups, const Options& options, bool from_scratch = false);

}  // namespace assay::history
