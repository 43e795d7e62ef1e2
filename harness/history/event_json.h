// Events and suspects as JSON: the form in which the store keeps them, `history check` prints them, and
// bisect_commands() takes them.
#pragma once

#include "harness/history/history.h"

#include <vector>
#include "harness/json/fwd.h"

namespace assay::history {

Json event_json(const Event& event, const History& history);
Json suspect_json(const Suspect& suspect, const History& history);

// Events as they were reported, and what a check would find now: other events, and suspects.
std::vector<Reported> known_changes(const History& history);

}  // namespace assay::history
