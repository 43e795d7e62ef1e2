// Open events as gauges, for alerts.
#include "harness/history/series/order.h"
#include "harness/history/store/facts.h"
#include "reports/exchange/gauges.h"
#include "reports/history/document.h"

#include <cmath>

namespace assay::history {

namespace {

// The commit that a bisection found, or the first that was measured with the change.
std::string commit_of(const Event& event, const store::Run* after) {
  if (!event.culprit.empty()) return event.culprit.substr(0, event.culprit.find(' '));
  return after ? after->commit : std::string();
}

std::string labels_of(const Event& event, const History& history) {
  const TrackedSeries* const worst = event.series.empty() ? nullptr : &history.series[event.series.front().series];
  const store::Run* const after = worst ? history.run_after(event.series.front().series, event.first_after) : nullptr;
  const std::string machine = event.machines.empty() ? "" : event.machines.front();
  return report::prometheus_labels(
      {{"event", event.id},
       {"kind", std::string(name_of(event.kind))},
       {"suite", after ? store::fact_of(history.contents.facts[static_cast<std::size_t>(after->facts)], "suite") : ""},
       {"case", worst ? worst->identity.key : event.subject},
       {"metric", worst ? worst->identity.metric : ""},
       {"host", worst ? worst->identity.machine : machine},
       {"commit", commit_of(event, after)}});
}

}  // namespace

std::string prometheus_events(const History& history) {
  report::PrometheusGauges gauges;
  for (const Event& event : history.found.events) {
    if (event.state != EventState::open) continue;
    gauges.set("assay_history_open_event", labels_of(event, history), event.alarms() ? 1 : 0,
               "An open event, with its worst case: 1 if it fails a check, else 0.");
    if (event.shift)
      gauges.set("assay_history_event_speed_ratio", report::prometheus_labels({{"event", event.id}}),
                 std::exp(*event.shift), "Speed after an open event as a share of that before it.");
  }
  if (history.arrival.last) {
    constexpr double seconds_per_day = 86400;
    gauges.set("assay_history_newest_night_timestamp_seconds", "",
               seconds_per_day * day_of(history.contents, *history.arrival.last), "The newest night of the history.");
    gauges.set("assay_history_judged_series", "", static_cast<double>(history.arrival.judged),
               "Series with enough nights to be judged.");
  }
  return gauges.text();
}

}  // namespace assay::history
