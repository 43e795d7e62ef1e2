// Commands that find the commit of a change.
#pragma once

#include "harness/json/fwd.h"
#include "reports/history/history.h"

#include <optional>
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
};
// Of the worst series of a change; absent if the history no longer has it.
std::optional<Better> direction_of(const Json& change, const History& history);
std::vector<std::string> bisect_commands(const Json& change, const BisectCommands& commands = {});

}  // namespace assay::history
