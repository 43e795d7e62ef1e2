// Documents that `history check` and `history report` print and write.
#pragma once

#include "reports/history/history.h"
#include "reports/model/document.h"
#include "reports/model/test_suite.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::history {

// The part of a history to show: all, or series whose names match, from a night on.
struct View {
  std::string pattern = {};
  std::optional<Night> since = {};

  bool shows(const std::string& name) const { return matches(pattern, name); }
};

// The events and suspects that a view shows.
EventSet seen(const History& history, const View& view);

// Events with curves of their worst series, suspects, what is silent, broken or flaky, what is detectable, noise,
// drift.
report::Document history_document(const History& history, const View& view = {});
// A comment on a change: at most 20 lines of Markdown, events first.
report::Document short_document(const History& history);
// {"schema":1,"events":[..],"suspects":[..],"small":[..],"series_tested":..,"missing":..,"silent":[..],"replaced":[..],"false_alarms_per_night":..,
//  "detectable":{family: share},..}
Json history_json(const History& history);
Json event_json(const Event& event, const History& history);
Json suspect_json(const Suspect& suspect, const History& history);
// A test for each family and machine, which fails if an event alarms. It is skipped if the family did not arrive or is
// mostly blind.
report::TestSuite history_suite(const History& history, const Outcome& outcome);

// "at most 1 false alarm in 100 nights", and what that does not cover.
std::string promise(const Options& options);
std::vector<std::string> exceptions(const History& history);
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
