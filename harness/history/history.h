// A store as `history check` and `history report` judge it: what arrived, what changed, and the exit code.
#pragma once

#include "harness/core/error.h"
#include "harness/history/events/events.h"
#include "harness/history/series/tracked.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::history {

inline constexpr std::size_t settled_nights = 60;  // below, false alarms are a little likelier than promised
inline constexpr double min_arrived = 0.8;         // share of last week's series that must arrive

inline constexpr double confirm_share = 0.1;  // share of the promised false alarms that `history confirm` may raise

// Which series of the week before the last night had a value on it. Muted series without a value are not expected.
struct Arrival {
  std::optional<Night> last;  // the last night of any series
  std::size_t expected = 0;
  std::size_t arrived = 0;            // series that arrived, by themselves or on the machine that took over
  std::vector<std::size_t> replaced;  // series that arrived on another machine: indices of tracked series
  std::vector<std::size_t> silent;    // series that did not arrive
  std::size_t judged = 0;             // series with enough nights

  bool enough() const { return static_cast<double>(arrived) >= min_arrived * static_cast<double>(expected); }
};

struct History {
  store::Contents contents;
  std::vector<TrackedSeries> series;
  std::vector<TrackedGroup> groups;
  Options options;
  Analysis analysis;
  EventSet found;
  Arrival arrival;
  std::size_t left_out = 0;               // runs of commits that are not in the order of nights
  std::vector<std::string> tonight = {};  // what this check measured, a sentence each

  // The run of a tracked series on the last night up to `night`, or on the first night from it on; null if there is
  // none.
  const store::Run* run_before(std::size_t series_index, Night night) const;
  const store::Run* run_after(std::size_t series_index, Night night) const;
};

// Series, analysis and events of what the store holds; the analysis is kept there.
History read_history(store::Store& store, const Options& options, bool from_scratch = false);
// Fills in what follows from contents, series, groups, options and analysis.
History judged(History history);

// Stores the events, so that the next check knows their ids and which are new.
void save_events(store::Store& store, const History& history);

struct CheckRules {
  bool only_fresh = false;          // only events count that no earlier check reported
  bool strict = false;              // it is not enough if most series are blind
  std::optional<int> max_age = {};  // in days: nor if the last night is longer ago than that
  Night today = 0;
};
// failed: an event alarms; no_data: too few series arrived, none has enough nights, or the rules say so; why, in a
// sentence.
struct Outcome {
  ExitCode code = ExitCode::ok;
  std::string why = {};
};
Outcome outcome_of(const History& history, const CheckRules& rules = {});

}  // namespace assay::history
