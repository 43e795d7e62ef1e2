#include "harness/core/units.h"
#include "reports/answers/answers.h"
#include "reports/answers/words.h"
#include "reports/data/cells.h"
#include "reports/data/figures.h"
#include "reports/data/machine.h"
#include "reports/data/words.h"
#include "reports/summary/key_figures.h"

#include <algorithm>
#include <set>

namespace assay::report {

namespace {

// Worse than every reference by more than the tolerance, all of its interval.
bool below_all(const Metric& metric, const std::vector<double>& references) {
  const Interval range = metric.ci95.value_or(Interval{*metric.value, *metric.value});
  if (metric.better == Better::lower) return range.low > references.back() * (1 + answer_tolerance);
  return range.high < references.front() * (1 - answer_tolerance);
}

std::string place_text(const KeyFigure& figure, const std::vector<double>& references) {
  const Metric& metric = *figure.metric;
  const auto better = std::count_if(references.begin(), references.end(), [&](double other) {
    return metric.better == Better::lower ? other < *metric.value : other > *metric.value;
  });
  return fmt::format("{} {}: number {} beside {} ({} – {})", figure.title, figure_text(metric, *metric.value),
                     better + 1, plural(static_cast<std::int64_t>(references.size()), "reference run"),
                     format_quantity(references.front(), metric.unit), format_quantity(references.back(), metric.unit));
}

}  // namespace

Answer normal_answer(const RunSet& runs, const References& references) {
  Answer answer{"normal", "Normal", "", Tone::plain, {}};
  std::vector<std::string> shares, placed, below, published;
  std::set<std::size_t> used;
  std::size_t figures = 0;
  std::string name;
  for (const MachineRuns& machine : by_machine(runs)) {
    if (name.empty()) name = machine.machine.name;
    for (const KeyFigure& figure : key_figures(machine)) {
      ++figures;
      if (figure.metric->of_peak)
        shares.push_back(fmt::format("{} {}", figure.title, percent_text({*figure.metric->of_peak})));
      const Beside others = beside(figure, machine, references);
      used.insert(others.runs.begin(), others.runs.end());
      for (const PublishedFigure* one : others.published)
        published.push_back(fmt::format("{} {}; published by {} ({})", figure.title,
                                        figure_text(*figure.metric, *figure.metric->value), published_text(*one),
                                        one->source));
      if (others.values.empty()) continue;
      (below_all(*figure.metric, others.values) ? below : placed).push_back(place_text(figure, others.values));
    }
  }
  const auto among = static_cast<std::int64_t>(placed.size() + below.size());
  if (!below.empty()) {
    answer.tone = Tone::warn;
    answer.text = fmt::format("no: of {} with references {} below all of them: {}", plural(among, "key figure"),
                              below.size() == 1 ? "1 is" : fmt::format("{} are", below.size()), first_of(below));
  } else if (among > 0) {
    answer.tone = Tone::good;
    answer.text = fmt::format(
        "yes: no key figure is below {} of such a machine ({} of {} compared)",
        used.size() == 1 ? "the reference run" : fmt::format("all {} reference runs", used.size()), among, figures);
  } else {
    answer.text = "unknown: no reference of such a machine" + (name.empty() ? "" : " (" + name + ")");
  }
  if (!shares.empty()) answer.text += "; of its peaks: " + first_of(shares);
  for (auto* list : {&below, &placed, &published, &shares})
    answer.evidence.insert(answer.evidence.end(), list->begin(), list->end());
  return answer;
}

}  // namespace assay::report
