#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/floors/words.h"
#include "harness/record/disturbed.h"
#include "harness/runs/figures.h"
#include "harness/runs/key_figures.h"
#include "harness/runs/machine.h"
#include "reports/answers/answers.h"
#include "reports/answers/words.h"
#include "reports/bounds/bounds.h"
#include "reports/bounds/tried_forms.h"
#include "reports/model/cells.h"

#include <algorithm>
#include <set>

namespace assay::report {

namespace {

// Whether the figure is worse than every reference by more than the tolerance. Unknown if its interval holds both.
std::optional<bool> below_all(const Metric& metric, const std::vector<double>& references) {
  const Interval range = metric.ci95.value_or(Interval{*metric.value, *metric.value});
  const bool lower = metric.better == Better::lower;
  const double limit = lower ? references.back() * (1 + answer_tolerance) : references.front() * (1 - answer_tolerance);
  if (lower ? range.low > limit : range.high < limit) return true;
  if (lower ? range.high > limit : range.low < limit) return std::nullopt;
  return false;
}

std::string place_text(const KeyFigure& figure, const std::vector<double>& references) {
  const Metric& metric = *figure.metric;
  return fmt::format("{} {}; {}", figure.title, figure_text(metric, *metric.value), place_among(metric, references));
}

// The answer by one kind of yardstick.
struct Said {
  Tone tone = Tone::plain;
  std::string text = {};
  std::vector<std::string> evidence = {};
  bool undecided = false;  // a yardstick was there, but could not be applied
};

Said said_by(const fitness::CheckResult& floors) {
  Said said;
  std::vector<std::string> missed;
  for (const fitness::FloorResult& result : floors.results) {
    const bool figure = !result.records.empty() && result.records.front().value;
    std::string line = figure ? fmt::format("{}: {}", case_title(*result.records.front().entry.record),
                                            fitness::comparison_text(*result.floor, result.records.front()))
                              : fmt::format("{}: {}", fitness::floor_title(*result.floor), result.reason);
    if (result.verdict == Fitness::fail) {
      if (figure && disturbed(*result.records.front().entry.record)) line += ", disturbed";
      missed.push_back(line);
    }
    said.evidence.push_back(fmt::format("floor {}: {}", name_of(result.verdict, fitness::floor_words), line));
  }
  const auto all = plural(floors.results.size(), "floor");
  const std::size_t met = floors.count(Fitness::pass), unsure = floors.count(Fitness::unsure);
  if (!missed.empty()) {
    said.tone = Tone::bad;
    said.text = fmt::format("of {} {} not met: {}", all,
                            missed.size() == 1 ? "1 is" : fmt::format("{} are", missed.size()), first_few(missed));
  } else if (unsure > 0 || met == 0) {
    said.text = fmt::format("of {} {} met, {} undecided", all, met, unsure);
    said.undecided = true;
  } else {
    said.tone = Tone::good;
    said.text =
        met == floors.results.size() ? fmt::format("{} met", all) : fmt::format("of {} {} met, none missed", all, met);
  }
  return said;
}

}  // namespace

Answer normal_answer(const RunSet& runs, const References& references, const fitness::CheckResult* floors) {
  Answer answer{"normal", "Normal", "", Tone::plain, {}};
  std::vector<std::string> shares, placed, below, unsure, published, unusual, unknown;
  std::size_t usual = 0;
  std::set<std::size_t> used;
  std::size_t figures = 0;
  std::string name, hidden;
  for (const MachineRuns& machine : by_machine(runs)) {
    if (name.empty()) name = machine.machine.name;
    if (hidden.empty()) hidden = hidden_text(runs.runs()[machine.runs.back()]);
    for (const KeyFigure& figure : key_figures(machine)) {
      ++figures;
      const BoundShare scale = bound_share_of(*figure.entry, *figure.metric);
      if (!scale.why.empty()) unknown.push_back(fmt::format("{}: {}", figure.title, scale.why));
      if (scale.share) {
        std::string share = fmt::format("{} {}", figure.title, percent_text({*scale.share}));
        if (scale.of_memory) share += " of what memory allows";
        if (scale.usual)
          share += fmt::format(" (usual: {} – {})", format_percent(scale.usual->share.low),
                               format_percent(scale.usual->share.high));
        usual += scale.usual ? 1 : 0;
        if (scale.unusual() && disturbed(*figure.entry->record)) share += ", disturbed";
        if (const std::string tried = tried_forms_text(*figure.entry->record); scale.low() && !tried.empty())
          share += ": " + tried;
        (scale.unusual() ? unusual : shares).push_back(std::move(share));
      }
      const Beside others = beside(figure, machine, references);
      used.insert(others.runs.begin(), others.runs.end());
      for (const PublishedFigure* one : others.published)
        published.push_back(fmt::format("{} {}; published by {} ({})", figure.title,
                                        figure_text(*figure.metric, *figure.metric->value), published_text(*one),
                                        one->source));
      if (others.values.empty()) continue;
      const auto is_below = below_all(*figure.metric, others.values);
      (!is_below ? unsure : *is_below ? below : placed).push_back(place_text(figure, others.values));
    }
  }
  std::vector<Said> parts;
  if (floors) parts.push_back(said_by(*floors));
  const auto among = static_cast<std::int64_t>(placed.size() + below.size() + unsure.size());
  if (!below.empty())
    parts.push_back(
        {Tone::warn, fmt::format("of {} with references {} below all of them: {}", plural(among, "key figure"),
                                 below.size() == 1 ? "1 is" : fmt::format("{} are", below.size()), first_few(below))});
  else if (!unsure.empty())
    parts.push_back(
        {.text = fmt::format("of {} with references {} too uncertain to say whether below all of them: {}",
                             plural(among, "key figure"),
                             unsure.size() == 1 ? "1 is" : fmt::format("{} are", unsure.size()), first_few(unsure)),
         .undecided = true});
  else if (among > 0)
    parts.push_back({Tone::good, fmt::format("no key figure is below {} of such a machine ({} of {} compared)",
                                             used.size() == 1 ? "the reference run"
                                                              : fmt::format("all {} reference runs", used.size()),
                                             among, figures)});
  else
    parts.push_back({Tone::plain, "no reference of such a machine" + (name.empty() ? "" : " (" + name + ")")});
  if (!unusual.empty())
    parts.push_back(
        {Tone::warn,
         fmt::format("of {} with a usual share of the peak {} below it: {}", plural(usual, "key figure"),
                     unusual.size() == 1 ? "1 is" : fmt::format("{} are", unusual.size()), first_few(unusual))});
  else if (usual > 0)
    parts.push_back({Tone::good, fmt::format("{} of {} key figures {} the usual share of what the parts allow", usual,
                                             figures, usual == 1 ? "reaches" : "reach")});
  // The worst comes first: bad, warn, what could not be decided, good, and last a yardstick that is not there.
  const auto weight = [](const Said& said) {
    return said.undecided ? static_cast<double>(Tone::good) + 0.5 : static_cast<double>(said.tone);
  };
  std::ranges::stable_sort(parts, [&](const Said& a, const Said& b) { return weight(a) > weight(b); });
  const Tone tone = parts.front().tone;
  answer.tone = tone;
  answer.text = tone == Tone::good ? "yes: " : tone == Tone::plain ? "unknown: " : "no: ";
  for (const Said& said : parts) {
    answer.text += (&said == &parts.front() ? "" : "; ") + said.text;
    answer.evidence.insert(answer.evidence.end(), said.evidence.begin(), said.evidence.end());
  }
  if (!shares.empty()) answer.text += "; of its peaks: " + first_few(shares);
  if (!hidden.empty()) answer.text += "; " + hidden;
  for (auto* list : {&below, &unusual, &unsure, &placed, &published, &shares, &unknown})
    answer.evidence.insert(answer.evidence.end(), list->begin(), list->end());
  return answer;
}

}  // namespace assay::report
