// Documents that `history check` and `history report` print and write.
#pragma once

#include "harness/history/branch.h"
#include "harness/history/history.h"
#include "harness/history/pull_request.h"
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
// The same for a terminal: at most 40 lines of 100 columns, whatever the history holds.
report::Document terminal_document(const History& history);
inline constexpr const char* commit_place = "{commit}";  // in the address of a commit
struct CommentStyle {
  std::string commit_url = {};       // address of a commit, with commit_place; empty: no links
  std::string build = {}, run = {};  // commands to bisect with; empty: to be filled in
};
// At most 20 lines of Markdown: what became slower, since when, why, and what to do. Only the links to commits are
// live.
std::string night_comment(const History& history, const Outcome& outcome, const CommentStyle& style);
// {"schema":1,"events":[..],"suspects":[..],"small":[..],"series_tested":..,"missing":..,"silent":[..],"replaced":[..],"false_alarms_per_night":..,
//  "detectable":{family: share},..}
Json history_json(const History& history);
// Open events as Prometheus' gauges, and of when and of how many series they are known.
std::string prometheus_events(const History& history);
// A test for each family and machine, which fails if an event alarms. It is skipped if the family did not arrive or is
// mostly blind.
report::TestSuite history_suite(const History& history, const Outcome& outcome);

// "at most 1 false alarm in 100 nights", and what that does not cover.
std::string promise(const Options& options);
std::vector<std::string> exceptions(const History& history);

report::Document branch_document(const BranchComparison& comparison, const History& main);
Json branch_json(const BranchComparison& comparison, const History& main);

// A comment of at most 20 lines.
report::Document pull_request_document(const PullRequestResult& result);
Json pull_request_json(const PullRequestResult& result);

}  // namespace assay::history
