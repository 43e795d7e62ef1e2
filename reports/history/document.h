// Documents that `history check` and `history report` print and write.
#pragma once

#include "harness/history/branch.h"
#include "harness/history/history.h"
#include "reports/model/document.h"
#include "reports/model/test_suite.h"

#include <optional>
#include <string>
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
// A test for each family and machine, which fails if an event alarms. It is skipped if the family did not arrive or is
// mostly blind.
report::TestSuite history_suite(const History& history, const Outcome& outcome);

// "at most 1 false alarm in 100 nights", and what that does not cover.
std::string promise(const Options& options);
std::vector<std::string> exceptions(const History& history);

report::Document branch_document(const BranchComparison& comparison, const History& main);
Json branch_json(const BranchComparison& comparison, const History& main);

}  // namespace assay::history
