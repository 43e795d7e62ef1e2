// The page of a history, and its short form.
#include "reports/history/document.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/history/blame/bisect.h"
#include "harness/history/event_json.h"
#include "harness/history/renames.h"
#include "harness/history/series/order.h"
#include "harness/history/series/variation.h"
#include "harness/history/sight.h"
#include "harness/statistics/statistics.h"
#include "reports/model/cells.h"
#include "reports/model/date_axis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

namespace assay::history {

namespace {

using report::Cell;
using report::count_cell;
using report::Document;
using report::no_cell;
using report::right;
using report::Section;
using report::Table;
using report::text_cell;
using report::Tone;

constexpr std::size_t max_pictures = 10;  // events with curves
constexpr double max_shown = 10;          // of a step, as a share of speed
constexpr std::size_t max_rows = 1000;    // of a table; the JSON has all

std::string percent(double log_ratio) { return fmt::format("{:+.1f} %", 100 * std::expm1(log_ratio)); }

Cell shift_cell(const std::optional<double>& shift, const std::optional<Interval>& interval) {
  if (!shift) return no_cell();
  std::string text = percent(*shift);
  if (interval) text += fmt::format(" ({} .. {})", percent(interval->low), percent(interval->high));
  return {text, {{"value", std::expm1(*shift)}, {"unit", "1"}}, Tone::plain, {}, *shift};
}

Cell share(const std::optional<double>& part) { return part ? report::share_cell(*part) : no_cell(); }

Tone tone_of(const Event& event) {
  if (event.alarms()) return Tone::bad;
  if (event.state == EventState::open) return event.kind == EventKind::faster ? Tone::good : Tone::warn;
  return Tone::faint;
}

std::string nights_text(const History& history, Night before, Night after) {
  return night_text(history.contents, before) + " .. " + night_text(history.contents, after);
}

std::string why(const Event& event) {
  if (!event.decision.empty()) return event.decision;
  if (!event.culprit.empty()) return "since " + event.culprit;
  if (event.detail.empty() || event.blame.sentence.empty())
    return event.detail.empty() ? event.blame.sentence : event.detail;
  return event.detail + "; " + event.blame.sentence;
}

const std::vector<report::Column>& event_columns() {
  static const std::vector<report::Column> columns = {{"id", "event"}, {"state"},
                                                      {"kind"},        {"between"},
                                                      {"what"},        right("shift", "speed"),
                                                      right("series"), {"why", "cause or decision"}};
  return columns;
}

std::vector<Cell> event_row(const Event& event, const History& history) {
  const std::string state = std::string(name_of(event.state)) + (event.fresh && event.alarms() ? ", new" : "");
  return {text_cell(event.id, tone_of(event)),
          text_cell(state, tone_of(event)),
          text_cell(std::string(name_of(event.kind))),
          {nights_text(history, event.last_before, event.first_after),
           date_text(day_of(history.contents, event.first_after))},
          text_cell(event.subject),
          shift_cell(event.shift, event.interval),
          count_cell(event.series.size()),
          text_cell(why(event))};
}

// Days by their dates; or commits by their place.
report::Axis night_axis(const History& history) {
  return history.contents.commits.empty() ? report::Axis{"night", report::date_unit} : report::Axis{"commit", ""};
}

// Speed from the track's night `first` on, as a share of that of `level`; each point names its commit.
report::Curve curve_of(const History& history, const TrackedSeries& series, std::size_t first, double level) {
  report::Curve curve{series.name, report::Mark::line_and_points, {}};
  const Track& track = series.track;
  for (std::size_t n = first; n < track.nights.size(); ++n) {
    std::string label = night_text(history.contents, track.nights[n]);
    const std::string& commit = history.contents.runs[static_cast<std::size_t>(series.runs[n])].commit;
    if (history.contents.commits.empty() && !commit.empty()) label += ", commit " + commit.substr(0, 12);
    curve.points.push_back(
        {static_cast<double>(track.nights[n]), std::exp(track.values[n] - level), {}, std::move(label)});
  }
  return curve;
}

// Speed of the worst series around an event, as a share of what it was before.
report::Figure event_figure(const Event& event, const History& history) {
  constexpr std::size_t curves = 5;
  constexpr Night before = 60;
  report::Figure figure{"event-" + event.id,
                        fmt::format("{}: {}", event.id, event.subject),
                        fmt::format("{}, {} after {}", event.subject, event.shift ? percent(*event.shift) : "changed",
                                    night_text(history.contents, event.last_before)),
                        night_axis(history),
                        {"speed, of that before", "1"},
                        {}};
  for (std::size_t i = 0; i < std::min(curves, event.series.size()); ++i) {
    const TrackedSeries& series = history.series[event.series[i].series];
    const auto& track = series.track;
    const auto last = series.at_or_before(event.last_before);
    if (!last) continue;
    const std::size_t from = *last + 1 - std::min<std::size_t>(*last + 1, 14);
    const double level = median(std::span(track.values).subspan(from, *last + 1 - from));
    const std::size_t first = track.count_until(event.first_after - before);
    figure.curves.push_back(curve_of(history, series, first, level));
  }
  return figure;
}

report::List event_list(const Event& event, const History& history) {
  report::List list{"about-" + event.id, {}};
  const auto line = [&](const std::string& text) { list.items.push_back(text); };
  line(fmt::format("{}: {}.", event.id, event.blame.sentence.empty() ? event.detail : event.blame.sentence));
  if (!event.blame.exonerated.empty()) {
    std::vector<std::string> names;
    for (const Cause& cause : event.blame.exonerated)
      names.push_back(
          fmt::format("{} (changed without effect on {})", cause.fact, fmt::join(cause.exonerated_by, ", ")));
    line(fmt::format("Not the cause: {}.", fmt::join(names, "; ")));
  }
  if (!event.blame.mediators.empty()) {
    std::vector<std::string> names;
    for (const Cause& cause : event.blame.mediators) names.push_back(cause.fact);
    line(fmt::format("Changed with it, as an effect: {}.", fmt::join(names, ", ")));
  }
  if (event.confirmed) line("Confirmed by measuring both sides in turn.");
  if (event.back > 0) line(fmt::format("{} more series that changed with it are back.", event.back));
  const std::vector<std::string> commands = bisect_commands(event_json(event, history));
  if (!commands.empty())
    line("To find the commit, with your own BUILD and COMMAND (git calls commits with the change bad):");
  for (const std::string& command : commands) line(command);
  return list;
}

Section tonight_section(const History& history) {
  Section section{"tonight", "Measured tonight", {}};
  if (!history.tonight.empty()) section.blocks.push_back(report::List{"tonight", history.tonight});
  return section;
}

// What the counts do not cover; nothing if all series see.
Section sight_section(const History& history) {
  const Sight sight = sight_of(history);
  Section section{"sight", "", {}};
  if (sight.blind > 0)
    section.blocks.push_back(report::Text{sight.text() + ".", sight.is_blind() ? Tone::warn : Tone::faint});
  return section;
}

Table event_table(const char* id, std::span<const Event* const> events, const History& history) {
  Table table{id, "", event_columns(), {}};
  for (const Event* event : events) table.rows.push_back(event_row(*event, history));
  return table;
}

Section about_section(const std::vector<const Event*>& events, const History& history) {
  Section section{"about", "About each event", {}};
  std::size_t pictures = 0;
  for (const Event* event : events) {
    if (!event->series.empty() && pictures++ < max_pictures) section.blocks.push_back(event_figure(*event, history));
    section.blocks.push_back(event_list(*event, history));
  }
  return section;
}

report::Text not_shown(std::size_t count) {
  return {fmt::format("{} more are not shown; --json has all.", count), report::Tone::warn};
}

// All series of each event, which a page folds away.
Section members_section(const std::vector<const Event*>& events, const History& history) {
  Section section{"members", "Series of each event", {}, false};
  for (const Event* event : events) {
    if (event->series.empty()) continue;
    report::List list{"members-" + event->id, {}};
    for (const EventSeries& one : event->series) {
      if (list.items.size() == max_rows) break;
      list.items.push_back(fmt::format("{}: {} ({} .. {}){}", history.series[one.series].name, percent(one.shift),
                                       percent(one.interval.low), percent(one.interval.high),
                                       one.measured  ? ", measured side by side"
                                       : one.alarmed ? ""
                                                     : ", with the others"));
    }
    section.blocks.push_back(report::Text{fmt::format(
        "{}: {}, {}.", event->id, event->subject, plural(static_cast<std::int64_t>(event->series.size()), "figure"))});
    const std::size_t left_out = event->series.size() - list.items.size();
    section.blocks.push_back(std::move(list));
    if (left_out > 0) section.blocks.push_back(not_shown(left_out));
  }
  return section;
}

Section suspect_section(const History& history) {
  const std::vector<Suspect>& suspects = history.found.suspects;
  Section section{"suspects", "Suspects", {}};
  if (suspects.empty()) return section;
  section.blocks.push_back(report::Text{
      "More nights decide; they never fail a check. `assay history confirm` decides one tonight.", Tone::faint});
  Table table{"suspects",
              "",
              {{"id", "suspect"},
               {"between"},
               {"series"},
               right("shift", "speed"),
               {"needs", "nights still needed"},
               {"note", ""}},
              {}};
  for (const Suspect& one : suspects)
    table.rows.push_back({text_cell(one.id),
                          text_cell(nights_text(history, one.change.last_before, one.change.first_after)),
                          text_cell(history.series[one.series].name), shift_cell(one.change.shift, one.change.interval),
                          one.nights_needed ? count_cell(*one.nights_needed) : text_cell("not known"),
                          text_cell(one.dismissed           ? "measured again: no difference"
                                    : one.change.same_night ? "larger than ever: worth confirming tonight"
                                                            : "")});
  section.blocks.push_back(std::move(table));
  return section;
}

// Cases that do not hold now, whether they ever did.
std::vector<std::string> broken_now(const store::Contents& contents) {
  std::map<std::pair<std::string, std::string>, std::string> now;
  for (const store::Run& run : contents.runs) {
    for (const auto& [key, reason] : run.broken) now[{run.machine, key}] = reason;
    for (const std::string& key : run.held) now.erase({run.machine, key});
  }
  std::vector<std::string> lines;
  for (const auto& [place, reason] : now) lines.push_back(fmt::format("{}: {}: {}", place.first, place.second, reason));
  return lines;
}

Section silent_section(const History& history, const View& view) {
  Section section{"silent", "Silent, broken, flaky", {}};
  const auto list = [&](const char* id, const std::string& title, std::vector<std::string> items) {
    if (items.empty()) return;
    section.blocks.push_back(report::Text{fmt::format("{}: {}.", title, items.size())});
    constexpr std::size_t max_items = 100;
    const std::size_t left_out = items.size() - std::min(items.size(), max_items);
    items.resize(items.size() - left_out);
    section.blocks.push_back(report::List{id, std::move(items)});
    if (left_out > 0) section.blocks.push_back(not_shown(left_out));
  };
  std::vector<std::string> silent, flaky;
  for (const std::size_t index : history.arrival.silent)
    if (view.shows(history.series[index].name)) silent.push_back(history.series[index].name);
  for (std::size_t i = 0; i < history.analysis.series.size(); ++i)
    if (history.analysis.series[i].flaky && view.shows(history.series[i].name)) flaky.push_back(history.series[i].name);
  list("silent", "Ran in the week before, and not on the last night", std::move(silent));
  std::vector<std::string> renamed;
  for (const Rename& one : seeming_renames(history))
    renamed.push_back(
        fmt::format("{} stopped where {} began, at the same speed; if so: {}", one.from, one.to, alias_command(one)));
  list("renamed", "Renamed?", std::move(renamed));
  list("broken", "Cases that do not hold", broken_now(history.contents));
  list("flaky", "Noise too large, or two recoveries in 90 nights: a step alarms late", std::move(flaky));
  return section;
}

Section noise_section(const History& history) {
  Table table{"noise",
              "",
              {{"family"},
               right("series"),
               right("detectable"),
               right("within", "in a run"),
               right("runs", "of runs"),
               right("nights", "of nights"),
               right("machines", "of machines"),
               {"buy", "what would help"}},
              {}};
  const auto known = detectable(history);
  for (const Variation& one : variations(history.contents, history.series, history.analysis.series)) {
    const auto at = known.find(one.family);
    table.rows.push_back({text_cell(one.family), count_cell(one.series),
                          at == known.end() ? no_cell() : report::share_cell(at->second), share(one.within_run),
                          share(one.between_runs), share(one.between_nights), share(one.between_machines),
                          text_cell(one.advice)});
  }
  report::Text about{
      "Standard deviations of the last 60 nights, medians over series: within a run, between runs of a "
      "night, between nights, between machines. Detectable: the smallest step that alarms within 14 nights "
      "in 80 % of cases.",
      Tone::faint};
  return {"noise", "Noise", {std::move(table), std::move(about)}, false};
}

Section promise_section(const History& history) {
  report::List list{"promise", {fmt::format("Alarms: {}.", promise(history.options))}};
  std::vector<std::string> families;
  for (const auto& [family, share] : detectable(history))
    families.push_back(fmt::format("{} {}", family, share > max_shown ? "more than 1000 %" : format_percent(share)));
  list.items.push_back(
      families.empty() ? fmt::format("Detectable: not known before a series has {} nights.", min_nights)
                       : fmt::format("Detectable within 14 nights in 80 % of cases: {}.", fmt::join(families, ", ")));
  for (const std::string& text : exceptions(history)) list.items.push_back(text);
  return {"promise", "What this can tell", {std::move(list)}};
}

Section method_section(const Options& options) {
  report::List list{
      "method",
      {"A series is a case, device, ranks, nodes, conditions and metric on a machine; a night is a UTC day, its figure "
       "the median of its runs. What a library or a search chose is no part of a series: a change of it is a cause.",
       "A change needs two tests that agree: a Student-t likelihood ratio and normal scores, both corrected for "
       "autocorrelation. It begins as a suspect; Benjamini-Hochberg over all series of a night opens it as an event.",
       fmt::format("Changes below {} never alarm. One event is everything that changed in one direction between the "
                   "same two nights, under one id that stays.",
                   format_percent(options.tolerance)),
       "Blame: facts that differ across the gap, by Fisher's exact test over machines and series. A fact that changed "
       "elsewhere without effect is not the cause; clock, power and throttling are effects of something else.",
       "Drift: the last 30 nights against the first 60 of the regime. Drifts never fail a check."}};
  return {"method", "Method", {std::move(list)}, false};
}

Section series_section(const History& history, const std::vector<std::size_t>& chosen, const View& view) {
  Section section{"series", "Series", {}};
  report::Figure figure{"series",
                        "Speed, of the first night shown",
                        "Each night's speed of the series chosen",
                        night_axis(history),
                        {"speed", "1"},
                        {}};
  Table table{"series",
              "",
              {{"series"}, right("nights"), right("first"), right("last"), right("noise"), right("detectable")},
              {}};
  std::size_t left_out = 0;
  for (const std::size_t index : chosen) {
    const TrackedSeries& one = history.series[index];
    const SeriesState& state = history.analysis.series[index];
    const auto from = view.since ? one.at_or_after(*view.since) : std::optional<std::size_t>(0);
    if (!from || (table.rows.size() == max_rows && ++left_out > 0)) continue;
    const auto cell = [&](double value) {
      Cell made = report::quantity_cell({one.figure(value), {}}, one.identity.unit);
      if (one.track.count) made.text = fmt::format("{}", one.figure(value));  // every digit counts
      return made;
    };
    table.rows.push_back({text_cell(one.name), count_cell(one.track.nights.size() - *from),
                          cell(one.track.values[*from]), cell(one.track.values.back()), report::share_cell(state.sigma),
                          share(smallest_alarm(state, history.options))});
    if (figure.curves.size() == 5) continue;
    figure.curves.push_back(curve_of(history, one, *from, one.track.values[*from]));
  }
  section.blocks.push_back(std::move(table));
  if (left_out > 0) section.blocks.push_back(not_shown(left_out));
  if (!figure.curves.empty()) section.blocks.push_back(std::move(figure));
  return section;
}

std::string counts(const History& history) {
  const std::vector<Event>& events = history.found.events;
  const auto count = [&](auto test) { return std::ranges::count_if(events, test); };
  const auto of = [&](EventKind kind) {
    return count([&](const Event& one) { return one.kind == kind && one.state == EventState::open; });
  };
  const auto in = [&](EventState state) { return count([&](const Event& one) { return one.state == state; }); };
  const auto protocols =
      count([](const Event& one) { return one.alarms() && one.kind == EventKind::changed_protocol; });
  std::string text =
      fmt::format("slower: {} · broke: {} · faster: {} · drifts: {} · suspects: {}", of(EventKind::slower) + protocols,
                  of(EventKind::broke), of(EventKind::faster), of(EventKind::drift), history.found.suspects.size());
  for (const EventState state :
       {EventState::acknowledged, EventState::muted, EventState::expected, EventState::recovered})
    if (const auto n = in(state); n > 0) text += fmt::format(" · {}: {}", name_of(state), n);
  return text;
}

Document headed(const History& history) {
  Document document{"Assay history", "", counts(history), Tone::good, {}};
  std::string arrived = "no night yet";
  if (history.arrival.last)
    arrived = (history.contents.commits.empty() ? "newest night " : "newest commit ") +
              night_text(history.contents, *history.arrival.last);
  if (history.arrival.expected > 0)
    arrived += fmt::format(", {} of last week's {} series arrived", history.arrival.arrived, history.arrival.expected);
  if (!history.arrival.replaced.empty())
    arrived += fmt::format(", {} of them on another machine", history.arrival.replaced.size());
  document.headline = fmt::format("{} series, {}; {}", format_number(static_cast<double>(history.series.size()), 0),
                                  promise(history.options), arrived);
  const auto any = [&](auto test) { return std::ranges::any_of(history.found.events, test); };
  if (any([](const Event& event) { return event.alarms(); }))
    document.tone = Tone::bad;
  else if (!history.arrival.enough() || history.arrival.judged == 0 || sight_of(history).is_blind() ||
           any([](const Event& event) { return event.state == EventState::open && event.kind == EventKind::drift; }))
    document.tone = Tone::warn;
  return document;
}

void add_section(Document& document, Section section) {
  if (!section.blocks.empty()) document.sections.push_back(std::move(section));
}

}  // namespace

std::string promise(const Options& options) {
  const double nights = options.false_alarms > 0 ? 1 / options.false_alarms : 0;
  return fmt::format("at most 1 false alarm in {} nights", format_number(nights, nights < 10 ? 1 : 0));
}

std::vector<std::string> exceptions(const History& history) {
  std::size_t young = 0;
  std::set<std::string> machines;
  for (const TrackedSeries& one : history.series)
    if (one.track.nights.size() < settled_nights) ++young, machines.insert(one.identity.machine);
  std::vector<std::string> all = {
      "Not covered: a slower state that lasts several nights and goes by itself, until the series is known to have "
      "it."};
  if (young > 0)
    all.push_back(fmt::format("Not covered either: {} series on {} with fewer than {} nights; import their past.",
                              young, plural(machines.size(), "machine"), settled_nights));
  if (const CrowdedNights crowded = crowded_nights(history.contents); crowded.nights > 0)
    all.push_back(
        fmt::format("{} with runs of several commits (up to {}) count as one figure each: --order commit "
                    "judges each commit.",
                    plural(static_cast<std::int64_t>(crowded.nights), "night"), crowded.max_commits));
  if (history.left_out > 0)
    all.push_back(fmt::format("Left out, as their commits are no first parents of HEAD here: {}.",
                              plural(static_cast<std::int64_t>(history.left_out), "run")));
  return all;
}

EventSet seen(const History& history, const View& view) {
  const auto shown = [&](std::size_t index) { return view.shows(history.series[index].name); };
  EventSet set = history.found;
  std::erase_if(set.events, [&](const Event& event) {
    if (view.since && event.first_after < *view.since) return true;
    if (event.series.empty()) return !view.shows(event.subject);
    return std::ranges::none_of(event.series, [&](const EventSeries& one) { return shown(one.series); });
  });
  std::erase_if(set.suspects, [&](const Suspect& suspect) { return !shown(suspect.series); });
  return set;
}

Document history_document(const History& history, const View& view) {
  std::vector<const Event*> current, past;
  for (const Event& event : history.found.events) (event.state == EventState::open ? current : past).push_back(&event);
  Document document = headed(history);
  add_section(document, sight_section(history));
  add_section(document, current.empty() ? Section{"events", "Events", {report::Text{"None.", Tone::faint}}}
                                        : Section{"events", "Events", {event_table("events", current, history)}});
  add_section(document, tonight_section(history));
  if (!current.empty()) add_section(document, about_section(current, history));
  add_section(document, members_section(current, history));
  add_section(document, suspect_section(history));
  if (!past.empty()) {
    const auto rows = std::span(past).first(std::min(past.size(), max_rows));
    Section section{"past", "Recovered, decided, and small events", {event_table("past", rows, history)}};
    if (past.size() > rows.size()) section.blocks.push_back(not_shown(past.size() - rows.size()));
    document.sections.push_back(std::move(section));
  }
  add_section(document, silent_section(history, view));
  if (!view.pattern.empty() || view.since) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < history.series.size(); ++i)
      if (view.shows(history.series[i].name)) chosen.push_back(i);
    if (!chosen.empty()) add_section(document, series_section(history, chosen, view));
  }
  add_section(document, promise_section(history));
  add_section(document, noise_section(history));
  add_section(document, method_section(history.options));
  return document;
}

}  // namespace assay::history
