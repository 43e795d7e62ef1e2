// Commands that find the commit of a change.
#pragma once

#include "harness/history/series/tracked.h"
#include "harness/json/fwd.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::history {

// Commands that find the commit of a change, by `git bisect` with `assay ab` as the judge, or of a case that broke with
// the command's exit code; to git, commits with the change are bad. None if the commits on both sides are equal, or one
// is no commit. `change` is what event_json() or suspect_json() gave; the rest are the user's: commands in a checkout,
// and --metric of `ab` (empty: none).
struct BisectCommands {
  std::string build = "BUILD";
  std::string run = "COMMAND";
  std::string metric = {};
  std::optional<Better> better = {};  // which way the figure counts, where the output does not say
  bool by_metric = false;             // the case has several metrics like that of the change
};
// Fills in what the change's worst series tells; nothing if it is no longer among these.
void look_up(BisectCommands& commands, const Json& change, std::span<const TrackedSeries> series);
std::vector<std::string> bisect_commands(const Json& change, const BisectCommands& commands = {});

}  // namespace assay::history
