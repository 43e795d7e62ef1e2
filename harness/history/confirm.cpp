#include "harness/history/confirm.h"

#include "harness/core/text.h"
#include "harness/history/event_json.h"
#include "harness/history/series_figure.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::history {

namespace {

// 0 of a step within the range of its series' excursions.
double size_of(const Suspect& suspect) { return suspect.change.same_night ? std::abs(suspect.change.shift) : 0; }

Candidate of_suspect(const Suspect& suspect, const History& history) {
  const Change& change = suspect.change;
  Candidate candidate{{}, true};
  Event& event = candidate.event;
  event.id = suspect.id;
  event.kind = change.shift < 0 ? EventKind::slower : EventKind::faster;
  event.last_before = change.last_before;
  event.first_after = change.first_after;
  event.opened = *history.arrival.last;
  event.subject = history.series[suspect.series].name;
  event.series.push_back({suspect.series, change.shift, change.interval, change.p, true});
  finish_series(event, history.series);
  return candidate;
}

// What a run says it measured, by --label command=..., as a flag to copy; empty if that flag is given, or the run says
// nothing.
std::string as_recorded(const char* flag, const std::string& given, const History& history, const store::Run* run) {
  constexpr std::size_t max_bytes = 2000;
  if (!given.empty() || !run) return "";
  const std::string command =
      store::fact_of(history.contents.facts[static_cast<std::size_t>(run->facts)], "label.command");
  return command.empty() ? "" : fmt::format("; recorded: {} {}", flag, one_line(shell_word(command), max_bytes));
}

// Confirmations of the last night.
std::size_t earlier_confirmations(const History& history) {
  std::size_t count = 0;
  for (const Reported& one : reported_events(history.contents))
    if ((one.confirmed || one.state == EventState::dismissed) && one.opened == *history.arrival.last) ++count;
  return count;
}

// The figure of a candidate's series in what the commands print.
struct Wanted {
  std::size_t candidate = 0;
  SeriesFigure figure;
  bool found = false;  // in A's first output
};

// What may be printed for a candidate: the figure of each case and metric by the name of its case, and if none is there
// (`loosely`), or a metric is named, the one that SeriesFigure takes.
std::vector<Wanted> figures_to_confirm(const std::vector<Candidate>& candidates, const History& history,
                                       const std::string& metric, bool loosely) {
  std::vector<Wanted> all;
  for (std::size_t i = 0; i < candidates.size(); ++i) try {
      std::vector<std::size_t> series;
      std::set<std::tuple<std::string, std::string, std::string>> seen;
      for (const EventSeries& one : candidates[i].event.series) {
        const store::SeriesIdentity& id = history.series[one.series].identity;
        if (seen.emplace(id.key, id.metric, id.conditions).second) series.push_back(one.series);
      }
      if (loosely || !metric.empty())
        all.push_back({i, {history, std::move(series), metric}});
      else
        for (const std::size_t one : series) all.push_back({i, {history, {one}, "lines"}});
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("history confirm: {}", error.what()));
    }
  return all;
}

// Reads the figures of all candidates. What A's first output has is read from then on; throws if it has none.
class CandidateFigures {
 public:
  CandidateFigures(const std::vector<Candidate>& candidates, const History& history, const std::string& metric)
      : history_(history),
        wanted_(figures_to_confirm(candidates, history, metric, false)),
        loosely_(figures_to_confirm(candidates, history, metric, true)) {}

  std::vector<ab::Figure> read(const CommandOutput& output, char side) {
    if (!chosen_) choose(output, side);
    std::vector<ab::Figure> figures;
    for (Wanted& one : wanted_) {
      ab::Figure figure = one.figure.read(output, side);
      figure.name = history_.series[one.figure.series()].name;
      // Two candidates may be about one series.
      if (std::ranges::find(figures, figure.name, &ab::Figure::name) == figures.end()) figures.push_back(figure);
    }
    return figures;
  }
  const std::vector<Wanted>& wanted() const { return wanted_; }

 private:
  void choose(const CommandOutput& output, char side) {
    const auto find = [&](std::vector<Wanted>& all) {
      for (Wanted& one : all) try {
          one.figure.read(output, side);
          one.found = true;
        } catch (const UsageError&) {
        }
      return std::ranges::any_of(all, &Wanted::found);
    };
    if (!find(wanted_)) {
      wanted_ = std::move(loosely_);
      if (!find(wanted_)) wanted_.front().figure.read(output, side);  // says what is wrong
    }
    std::erase_if(wanted_, [](const Wanted& one) { return !one.found; });
    chosen_ = true;
  }

  const History& history_;
  std::vector<Wanted> wanted_, loosely_;
  bool chosen_ = false;
};

// What a candidate's measured series say of it.
void conclude(Confirmation& found, Night night) {
  Event& event = found.candidate.event;
  const bool slower = event.kind == EventKind::slower;
  const auto confirms = [&](const MeasuredSeries& one) { return is_confirmed(one.outcome.verdict, slower); };
  // First the largest difference that confirms it, else what is undecided, else what goes the other way.
  const auto rank = [&](const MeasuredSeries& one) {
    const int order = confirms(one)                               ? 0
                      : one.outcome.verdict == Direction::unknown ? 1
                      : one.outcome.verdict == Direction::same    ? 3
                                                                  : 2;
    return std::pair(order, -std::abs(std::log(one.outcome.ratio)));
  };
  std::ranges::stable_sort(found.parts, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (found.outcome().verdict == Direction::unknown) return;
  event.confirmed = confirms(found.parts.front());
  for (const MeasuredSeries& part : found.parts)
    for (EventSeries& one : event.series)
      if (confirms(part) && one.series == part.series) one.measured = {std::log(part.outcome.ratio), night};
  event.state = event.confirmed || !found.candidate.suspect ? EventState::open : EventState::dismissed;
}

}  // namespace

const Suspect* to_confirm(const std::vector<Suspect>& suspects) {
  const Suspect* best = nullptr;
  for (const Suspect& one : suspects)
    if (!one.dismissed && (!best || size_of(one) > size_of(*best))) best = &one;
  return best;
}

double confirm_error(const Options& options, std::size_t earlier) {
  return std::ldexp(options.false_alarms * confirm_share, -1 - static_cast<int>(earlier));
}

bool is_confirmed(Direction verdict, bool slower) {
  return verdict == (slower ? Direction::slower : Direction::faster);
}

std::optional<Candidate> candidate_of(const History& history, const std::string& id) {
  const auto& suspects = history.found.suspects;
  if (id.empty()) {
    const Suspect* best = to_confirm(suspects);
    return best ? std::optional(of_suspect(*best, history)) : std::nullopt;
  }
  std::map<std::string, std::function<Candidate()>> found;
  for (const Event& event : history.found.events)
    if (event.state == EventState::open && !event.series.empty())
      found[event.id] = [&] { return Candidate{event, false}; };
  for (const Suspect& one : suspects) found[one.id] = [&] { return of_suspect(one, history); };
  if (const auto whole = found.find(id); whole != found.end()) return whole->second();
  std::erase_if(found, [&](const auto& one) { return !one.first.starts_with(id); });
  if (found.empty())
    throw UsageError(
        fmt::format("history confirm: no suspect or open event {}; `assay history check` lists them", in_quotes(id)));
  if (found.size() > 1) {
    std::vector<std::string> ids;
    for (const auto& one : found) ids.push_back(one.first);
    throw UsageError(
        fmt::format("history confirm: several suspects and events begin with {}: {}", in_quotes(id), joined(ids)));
  }
  return found.begin()->second();
}

bool Confirmation::is_kept() const {
  return outcome().verdict != Direction::unknown && (is_confirmed() || candidate.suspect);
}

std::string Confirmation::meaning() const {
  if (outcome().verdict == Direction::unknown)
    return candidate.suspect ? "Undecided: nothing is stored; more nights still judge the suspect."
                             : "Undecided: nothing is stored; the event stays open.";
  if (is_confirmed()) return "";
  return candidate.suspect ? "The builds show no such difference: the suspect is dismissed; more nights still judge it."
                           : "The builds show no such difference: look for a cause that is not the build.";
}

ExitCode Confirmation::code() const {
  if (outcome().verdict == Direction::unknown) return ExitCode::no_data;
  return outcome().verdict == Direction::slower ? ExitCode::failed : ExitCode::ok;
}

Confirmation confirm(const History& history, Candidate candidate, const ConfirmRequest& request,
                     const Measure& measure) {
  const Event& event = candidate.event;
  const std::size_t worst = event.series.front().series;
  if (request.good.empty() || request.bad.empty())
    throw UsageError(fmt::format(
        "history confirm: give --good and --bad: commands that measure the last good build and tonight's{}{}",
        as_recorded("--good", request.good, history, history.run_before(worst, event.last_before)),
        as_recorded("--bad", request.bad, history, history.run_after(worst, event.first_after))));
  return std::move(confirm_all(history, {std::move(candidate)}, request, measure).front());
}

std::vector<Confirmation> confirm_all(const History& history, std::vector<Candidate> candidates,
                                      const ConfirmRequest& request, const Measure& measure) {
  CandidateFigures figures(candidates, history, request.metric);
  const auto read = [&](const CommandOutput& output, char side) { return figures.read(output, side); };
  const ab::Result result = measure({"history confirm", request.good, request.bad, read},
                                    {.tolerance = request.tolerance.value_or(history.options.tolerance),
                                     .error = confirm_error(history.options, earlier_confirmations(history)),
                                     .budget = request.budget,
                                     .seed = request.seed});
  std::vector<Confirmation> all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Confirmation found{std::move(candidates[i]), {}, {}};
    for (const Wanted& one : figures.wanted()) {
      if (one.candidate != i) continue;
      const std::size_t series = one.figure.series();
      const auto at = std::ranges::find(result.cases, history.series[series].name, &ab::Case::name);
      found.parts.push_back({series, at == result.cases.end() ? result.all : at->outcome});
      found.remarks.insert(one.figure.remarks().begin(), one.figure.remarks().end());
    }
    if (found.parts.empty()) continue;
    conclude(found, *history.arrival.last);
    all.push_back(std::move(found));
  }
  return all;
}

void save_confirmation(store::Store& store, const Confirmation& confirmation, const History& history) {
  const Event& event = confirmation.candidate.event;
  if (confirmation.is_kept())
    store.save_events(std::vector<store::StoredEvent>{
        {event.id, std::string(name_of(event.state)), dump_line(event_json(event, history))}});
}

}  // namespace assay::history
