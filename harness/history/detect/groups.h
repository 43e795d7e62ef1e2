// Series that may change together, as one series.
#pragma once

#include "harness/history/detect/regimes.h"

namespace assay::history {

// The group's series on the nights that the analysis of night `last` looks at. Each member counts relative to its own
// median before a date that moves on every 28 nights; from a replacement of its hardware on, to its median since then.
Track track_of(std::span<const Track> tracks, const Group& group, Night last);

// Does for a group what walk() does for a series. Returns the group's series on night `last`.
Track walk_group(std::span<const Track> tracks, const Group& group, const Options& options, Night first, Night last,
                 Walked& walked);

}  // namespace assay::history
