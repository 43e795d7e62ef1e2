// Writes what most hosts of an accepted fleet have and reach, as files that --expect and --floors take.
#pragma once

#include "harness/fitness/accept/state.h"
#include "harness/fitness/cluster/cluster.h"

#include <filesystem>

namespace assay::accept {

// Writes DIR/expect.json from what the hosts said they have, and DIR/floors.json from the runs of the stage `host` on
// those of the most frequent kind that did not fail. What is not written is said, and why; a tie, and hosts of another
// kind, are noted in the table.
void write_majority(fitness::Acceptance& table, const fitness::AuditedFleet& audit, const State& state,
                    const std::filesystem::path& dir);

}  // namespace assay::accept
