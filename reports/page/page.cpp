// Puts the sections of the report in order.
#include "reports/page/page.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "reports/answers/answers.h"
#include "reports/bounds/bounds.h"
#include "reports/diagnosis/document.h"
#include "reports/hosts/hosts.h"
#include "reports/ranking/ranking.h"
#include "reports/roofline/roofline.h"
#include "reports/scaling/scaling.h"
#include "reports/summary/key_figures.h"
#include "reports/summary/sections.h"
#include "reports/summary/verdict.h"
#include "reports/sweep/sweeps.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

// The section of this id, and its appendices ("ranking_cases" with "ranking").
void keep_only(const std::string& id, std::vector<Section>& sections) {
  std::vector<std::string> names;
  for (const Section& section : sections) names.push_back(section.id);
  std::erase_if(sections, [&](const Section& one) { return one.id != id && !one.id.starts_with(id + "_"); });
  if (sections.empty())
    throw UsageError(fmt::format("report: --only {}: these runs have no such section{}; they have: {}", one_line(id),
                                 suggestion(id, names), fmt::join(names, ", ")));
}

}  // namespace

Document whole_report(const RunSet& runs, const PageOptions& options) {
  RunVerdict verdict = verdict_of(runs);
  Document document{"Assay report", std::move(verdict.headline), std::move(verdict.line), verdict.tone, {}};
  const auto add = [&](std::vector<Section> sections) {
    document.sections.insert(document.sections.end(), std::make_move_iterator(sections.begin()),
                             std::make_move_iterator(sections.end()));
  };
  const std::vector<Diagnosis> found = diagnose(runs, shipped_rules());
  document.answers = answers_of(runs, options.references, found, options.floors);
  // Figures that may be lower bounds, or miss what the user demands, are not green.
  if (document.tone == Tone::good)
    for (const Answer& answer : document.answers)
      if ((answer.id == "steady" && answer.tone == Tone::warn) || (answer.id == "normal" && answer.tone == Tone::bad))
        document.tone = Tone::warn;
  const ranking::Ranking ranking = ranking::rank(runs, options.prices);
  add(ranking::sections_of(ranking, options.items));
  if (!ranking.cases.empty() || !ranking.not_ranked.empty()) document.members["ranking"] = ranking::json_of(ranking);
  add(key_figure_sections(runs, options.references, options.floors));
  add(step_sections(runs));
  add(trace_sections(runs));
  add(attention_sections(runs));
  add(environment_sections(runs));
  add(host_sections(runs));
  add(pair_sections(runs));
  add(suite_sections(runs));
  add(workload_sections(runs));
  add(collective_sections(runs, options.nccl_table));
  const std::vector<Sweep> sweeps = find_sweeps(runs);
  add(sweep_sections(sweeps));
  if (!sweeps.empty()) document.members["sweeps"] = sweeps_json(sweeps);
  add(scaling_sections(runs));
  add(cost_sections(runs, options.prices));
  if (std::ranges::any_of(found, [](const Diagnosis& one) { return !one.fired.empty(); }))
    add(diagnosis_sections(found, options.prices));
  add(roofline_sections(runs));
  add(host_figure_sections(runs));
  add(sample_sections(runs));
  add(skipped_sections(runs));
  add(unreadable_sections(runs));
  add(part_sections(runs));
  add(normal_sections(runs));
  add(method_sections(runs));
  if (!options.only.empty()) keep_only(options.only, document.sections);
  return document;
}

}  // namespace assay::report
