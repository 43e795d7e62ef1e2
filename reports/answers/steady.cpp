#include "harness/core/text.h"
#include "harness/fitness/floors/words.h"
#include "harness/record/disturbed.h"
#include "harness/runs/figures.h"
#include "harness/runs/key_figures.h"
#include "reports/answers/answers.h"
#include "reports/answers/words.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace assay::report {

namespace {

constexpr std::size_t min_nights = 3;  // before a machine is called disturbed every night

std::string cpus_text(double cpus) { return fmt::format("{:.2g} {}", cpus, cpus == 1 ? "CPU" : "CPUs"); }

// "others used 1.8 CPUs (python3, pid 77: 0.9; other containers or the kernel: 0.9)".
std::string others_text(const OutsideCpu& outside) {
  std::vector<std::string> users;
  double rest = outside.cpus;
  for (const OutsideCpu::Process& process : outside.processes) {
    users.push_back(fmt::format("{}, pid {}: {:.2g}", process.name, process.pid, process.cpus));
    rest -= process.cpus;
  }
  if (rest >= notable_cpus) users.push_back(fmt::format("other containers or the kernel: {:.2g}", rest));
  return fmt::format("others used {}{}", cpus_text(outside.cpus),
                     users.empty() ? "" : fmt::format(" ({})", fmt::join(users, "; ")));
}

std::optional<double> precision(const Metric& metric) {
  const auto half = half_width(metric);
  return half && metric.value && *metric.value != 0 ? std::optional(*half / std::abs(*metric.value)) : std::nullopt;
}

struct Survey {
  std::int64_t measured = 0, known = 0, disturbed = 0, key_figures = 0;
  const OutsideCpu* worst = nullptr;
  std::string worst_disturbance;          // of the case that lost most
  std::vector<std::string> lower_bounds;  // key figures
  std::vector<std::string> imprecise;     // key figures, with their intervals
  std::vector<std::string> evidence;
};

void survey(const MachineRuns& machine, Survey& all) {
  constexpr std::size_t max_evidence = 50;
  std::set<const Record*> lower;
  double max_lost = -1;
  for (const CaseRuns& one : machine.cases)
    for (const Entry* entry : one.entries) {
      const Record& record = *entry->record;
      if (record.status != Status::ok) continue;
      ++all.measured;
      if (const auto& outside = record.outside_cpu) {
        ++all.known;
        if (!all.worst || outside->lost() > all.worst->lost()) all.worst = &*outside;
      }
      const std::string why = disturbance_of(record);
      if (why.empty()) continue;
      ++all.disturbed;
      lower.insert(&record);
      const double lost = record.outside_cpu ? record.outside_cpu->lost() : 0;
      if (lost > max_lost) {
        max_lost = lost;
        all.worst_disturbance = why;
      }
      if (all.evidence.size() < max_evidence) all.evidence.push_back(case_title(record) + ": " + why);
    }
  for (const KeyFigure& figure : key_figures(machine)) {
    ++all.key_figures;
    if (lower.contains(figure.entry->record)) all.lower_bounds.push_back(figure.title);
    if (const auto half = precision(*figure.metric); half && *half > answer_tolerance)
      all.imprecise.push_back(fmt::format("{} ({})", figure.title, precision_text(*half)));
  }
}

// The relative difference between two runs of this machine that exceeds what its runs differ by anyway (95 %), for the
// median key figure. Absent without three runs of one.
std::optional<double> visible_change(const MachineRuns& machine) {
  constexpr double of_two_runs = 1.96 * 1.4142;  // 95 %, of the difference of two values with the same noise
  std::vector<double> changes;
  for (const KeyFigure& figure : key_figures(machine)) {
    const auto same =
        std::ranges::find_if(machine.cases, [&](const CaseRuns& one) { return &one.newest() == figure.entry; });
    std::vector<double> values;
    for (const Entry* entry : same->entries)
      if (const Metric* metric = find_metric(*entry->record, figure.metric->name)) values.push_back(*metric->value);
    if (values.size() >= min_nights && median(values) > 0)
      changes.push_back(of_two_runs * robust_sigma(values) / median(values));
  }
  return changes.empty() ? std::nullopt : std::optional(median(changes));
}

// "Disturbed in 9 of 10 runs: changes below 6 % cannot be seen", of the first machine that is so in half of its runs.
std::string every_night(const std::vector<MachineRuns>& machines) {
  for (const MachineRuns& machine : machines) {
    std::set<std::size_t> disturbed_runs;
    for (const CaseRuns& one : machine.cases)
      for (const Entry* entry : one.entries)
        if (entry->record->status == Status::ok && disturbed(*entry->record)) disturbed_runs.insert(entry->run_index);
    if (machine.runs.size() < min_nights || 2 * disturbed_runs.size() < machine.runs.size()) continue;
    std::string text = fmt::format("Disturbed in {} of {} runs", disturbed_runs.size(), machine.runs.size());
    if (const auto change = visible_change(machine))
      text += fmt::format(": changes below {} cannot be seen", percent_text({*change}));
    return text;
  }
  return "";
}

// "gemm f32 64 x 64 x 64 (10 GFLOP/s >= 9.8 GFLOP/s [9.5, 10.5])".
std::vector<std::string> undecided_texts(const fitness::CheckResult* floors) {
  std::vector<std::string> texts;
  if (!floors) return texts;
  for (const auto& [floor, judgement] : floors->undecided())
    texts.push_back(
        fmt::format("{} ({})", case_title(*judgement->entry.record), fitness::comparison_text(*floor, *judgement)));
  return texts;
}

}  // namespace

std::string disturbance_of(const Record& record) {
  std::vector<std::string> parts;
  if (const auto& outside = record.outside_cpu) {
    if (notable(*outside, outside->cpus)) parts.push_back(others_text(*outside));
    if (notable(*outside, outside->steal)) parts.push_back("the hypervisor took " + cpus_text(outside->steal));
    if (const double held = outside->throttled.value_or(0); notable(*outside, held))
      parts.push_back("the cgroup's quota held back " + cpus_text(held));
  }
  if (throttled(record)) parts.push_back("a GPU was throttled");
  return joined(parts, "; ");
}

Answer steady_answer(const RunSet& runs, const fitness::CheckResult* floors) {
  Answer answer{"steady", "Steady", "", Tone::plain, {}};
  Survey all;
  for (const MachineRuns& machine : by_machine(runs)) survey(machine, all);
  if (all.measured == 0) {
    answer.text = "nothing was measured";
    return answer;
  }
  answer.evidence = std::move(all.evidence);
  const std::vector<std::string> undecided = undecided_texts(floors);
  answer.evidence.insert(answer.evidence.end(), undecided.begin(), undecided.end());
  const std::string too_wide =
      undecided.empty() ? "" : fmt::format("the 95 % interval contains the floor of {}", first_few(undecided));
  if (all.disturbed > 0) {
    answer.tone = Tone::warn;
    answer.text =
        fmt::format("no: while {} of {} measured, {}", plural(all.disturbed, "case"),
                    all.measured == 1 ? "1 was" : fmt::format("{} were", all.measured), all.worst_disturbance);
    if (const std::string often = every_night(by_machine(runs)); !often.empty()) answer.text += ". " + often;
    if (!all.lower_bounds.empty()) answer.text += fmt::format(". Only lower bounds: {}", first_few(all.lower_bounds));
    if (!too_wide.empty()) answer.text += ". And " + too_wide;
    return answer;
  }
  if (!too_wide.empty()) {
    answer.tone = Tone::warn;
    answer.text = "no: " + too_wide;
    return answer;
  }
  if (all.known == 0) {
    answer.text = "unknown: these records do not say what else ran";
    return answer;
  }
  answer.tone = Tone::good;
  answer.text = fmt::format("yes: others used at most {} while a case was measured", cpus_text(all.worst->lost()));
  if (!all.imprecise.empty())
    answer.text += fmt::format("; {} of {} key figures known to no better than {}: {}", all.imprecise.size(),
                               all.key_figures, plus_minus(answer_tolerance), first_few(all.imprecise));
  return answer;
}

}  // namespace assay::report
