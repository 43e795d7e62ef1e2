// Deciding about a suspect tonight, by measuring the last good build and tonight's in turn.
#pragma once

#include "harness/ab/commands.h"
#include "harness/core/error.h"
#include "harness/history/history.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::history {

// The suspect worth confirming first: the largest step of one night, else any. Null if there is none that is not
// dismissed.
const Suspect* to_confirm(const std::vector<Suspect>& suspects);

// The error that a night's next confirmation may have, after `earlier` confirmations of the same night: half of the
// share that these have left of confirm_share, so that all of them together stay within it.
double confirm_error(const Options& options, std::size_t earlier);

// Whether B (tonight's build) against A (the last good one) confirms a step of that direction.
bool is_confirmed(Direction verdict, bool slower);

// What is to be confirmed: an open event, or a suspect as the event that it would be.
struct Candidate {
  Event event;
  bool suspect = false;
};
// The suspect or open event whose id begins with `id`, or to_confirm()'s if it is empty; absent if there is nothing to
// confirm. Throws UsageError for no such id, and for several.
std::optional<Candidate> candidate_of(const History& history, const std::string& id);

struct ConfirmRequest {
  std::string good = {}, bad = {};  // commands that measure the last good build and tonight's
  std::string metric = {};          // as of SeriesFigure
  double budget = 600;              // seconds
  std::uint64_t seed = 0;
  std::optional<double> tolerance = {};  // instead of the history's
};

// A series that was measured.
struct MeasuredSeries {
  std::size_t series = 0;  // index of the tracked series
  ab::Outcome outcome;     // of tonight's build against the last good one
};

// The result of a confirmation.
struct Confirmation {
  Candidate candidate;                 // with the state and the measurements that follow from the outcomes
  std::vector<MeasuredSeries> parts;   // those of its series that the commands print, what decides it first; not empty
  std::set<std::string> remarks = {};  // what the reader of the figures should know

  std::size_t series() const { return parts.front().series; }
  const ab::Outcome& outcome() const { return parts.front().outcome; }
  bool is_confirmed() const { return candidate.event.confirmed; }
  // Whether there is a state to keep in the store: not of an undecided outcome, nor of an event that is not confirmed.
  bool is_kept() const;
  // What it means for the candidate, in a sentence; empty if it is confirmed.
  std::string meaning() const;
  // failed: slower; no_data: undecided.
  ExitCode code() const;
};

// Runs the commands, as ab::run_commands() does.
using Measure = std::function<ab::Result(const ab::Commands& commands, const ab::Options& options)>;
// Measures the figures of a candidate: of all of its series' cases and metrics that the commands print, in one
// comparison with one error rate; it is confirmed if one of them is. With a metric, the one figure that this names.
// Throws UsageError without both commands (and names those that the runs recorded; they are not run unasked, as whoever
// adds a run to the store may have written anything), and for a metric that is not the candidate's figure.
Confirmation confirm(const History& history, Candidate candidate, const ConfirmRequest& request,
                     const Measure& measure);
// Several candidates in one comparison. What the commands do not print is left out; throws UsageError if that is all.
std::vector<Confirmation> confirm_all(const History& history, std::vector<Candidate> candidates,
                                      const ConfirmRequest& request, const Measure& measure);
// Stores a confirmation that is_kept().
void save_confirmation(store::Store& store, const Confirmation& confirmation, const History& history);

}  // namespace assay::history
