#include "harness/fitness/gate/decision.h"

#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace assay::gate {

namespace {

// CPU time that explains a shortfall. Others that use u CPUs can slow work that waits for its slowest thread by about
// u: a quarter of that is enough, and a quarter of a CPU for any shortfall, as a time may be many times its limit.
double explaining(double shortfall) { return std::min(1.0, std::abs(shortfall)) / 4; }

bool by_quota(const Repetition& one) { return one.held_back.value_or(0) >= std::max(0.05, explaining(one.shortfall)); }
// Less than 2 % of a CPU is the kernel's own.
bool undisturbed(const Repetition& one) {
  return one.outside && *one.outside < std::max(0.02, explaining(one.shortfall));
}

// Whether at least as many repetitions as hard evidence needs are so.
template <typename Predicate>
bool enough(const Figure& figure, Predicate holds) {
  return static_cast<std::size_t>(std::ranges::count_if(figure.repetitions, holds)) >= needed_repetitions;
}

Finding finding_of(const Catalogue& catalogue, const std::string& id, Severity severity, std::string device,
                   std::string text) {
  const Code& code = catalogue.of(id);
  return {code.id,  code.policy.value_or(severity), std::move(text), code.meaning, code.fix, std::move(device),
          code.area};
}

std::string place_of(const std::string& device) { return device.empty() ? std::string() : " on " + device; }

void add_slowness(const TestOutcome& test, const Test& kind, const Catalogue& catalogue, std::vector<Finding>& to) {
  for (const Figure& figure : test.figures) {
    const auto slow = judge(figure);
    if (!slow || kind.slow.empty()) continue;
    to.push_back(
        finding_of(catalogue, slow->cause.empty() ? kind.slow : slow->cause, slow->severity, test.device, slow->text));
  }
}

void add_test(const TestOutcome& test, const Catalogue& catalogue, std::vector<Finding>& to) {
  const Test& kind = catalogue.test(test.test);
  const auto add = [&](const std::string& id, Severity severity) {
    to.push_back(finding_of(catalogue, id, severity, test.device,
                            fmt::format("{}{}: {}", test.test, place_of(test.device), test.reason)));
  };
  switch (test.state) {
    case TestState::wrong: add(kind.wrong, Severity::fault); break;
    case TestState::hung: add(kind.hung, Severity::warning); break;
    // A test that ended early shows something, but not that the machine is to blame.
    case TestState::broke: add(test.out_of_memory ? "out-of-memory" : kind.broke, Severity::warning); break;
    case TestState::passed:
    case TestState::slow:
    case TestState::not_run: break;
  }
  if (test.state != TestState::wrong) add_slowness(test, kind, catalogue, to);
}

void add_problem(const Finding& problem, const Scope& scope, const Catalogue& catalogue, std::vector<Finding>& to) {
  const Code& code = catalogue.of(problem.id);
  Finding finding = problem;
  finding.id = code.id;
  finding.area = code.area;
  finding.severity = code.policy.value_or(std::min(problem.severity, code.at_most));
  if (finding.meaning.empty()) finding.meaning = code.meaning;
  const bool of_a_gpu = finding.area == Area::gpu && !finding.device.empty();
  if (of_a_gpu && std::ranges::find(scope.others, finding.device) != scope.others.end()) {
    finding.severity = Severity::info;
    finding.seen += " (not one of the job's devices)";
  }
  to.push_back(std::move(finding));
}

}  // namespace

bool doubtful(const Figure& figure) {
  return !figure.repetitions.empty() && (figure.repetitions.back().below || figure.repetitions.back().shortfall > 0);
}

std::optional<Slowness> judge(const Figure& measured) {
  Figure figure = measured;
  std::erase_if(figure.repetitions, [](const Repetition& one) { return one.crowded; });
  const bool crowded = figure.repetitions.empty();
  if (crowded) figure = measured;
  const auto& all = figure.repetitions;
  const auto below = static_cast<std::size_t>(std::ranges::count_if(all, &Repetition::below));
  if (below == 0) return std::nullopt;
  const auto best = std::ranges::min_element(all, {}, &Repetition::shortfall);
  Slowness slow;
  slow.text = fmt::format("{}: {} against a floor of {}, {} of {} repetitions beyond it", figure.name,
                          format_quantity(best->value, figure.unit), format_quantity(figure.floor, figure.unit), below,
                          all.size());
  const bool quota = std::ranges::all_of(all, by_quota);
  if (quota) {
    slow.cause = "cpu-quota";
    slow.text += fmt::format("; a quota withheld {:.2f} CPUs", *best->held_back);
  }
  if (crowded) {
    slow.text += "; measured only while other GPUs were tested, too";
  } else if (below < all.size() || below < needed_repetitions) {
    slow.text += below < all.size() ? "; it does not repeat" : "; too few to be sure";
  } else if (quota || enough(figure, undisturbed)) {
    slow.severity = Severity::fault;
  } else if (enough(figure, [](const Repetition& one) { return one.slowed; })) {
    slow.cause = "gpu-slowed";
    slow.severity = Severity::fault;
  } else {
    const bool known = std::ranges::any_of(all, [](const Repetition& one) { return one.outside.has_value(); });
    slow.text += known ? "; others used CPU time meanwhile" : "; unknown what others used meanwhile";
  }
  return slow;
}

std::vector<std::string> unseen(const std::vector<TestOutcome>& tests, const Catalogue& catalogue) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> devices;  // by test and reason
  for (const TestOutcome& test : tests)
    if (const Test& kind = catalogue.test(test.test);
        test.state == TestState::not_run && kind.required && !kind.left_out)
      devices[{test.test, test.reason}].push_back(test.device);
  std::map<std::string, std::string> names;  // of tests, by the rest of their sentence
  for (const auto& [what, where] : devices) {
    std::string& tests_there =
        names[fmt::format(" did not run{}{}: {}", place_of(where.front()), and_more(where.size(), 1),
                          what.second.empty() ? "the gate ended before" : what.second)];
    tests_there += (tests_there.empty() ? "" : ", ") + what.first;
  }
  std::vector<std::string> sentences;
  for (const auto& [rest, which] : names) sentences.push_back(which + rest);
  return sentences;
}

Decision decide(const Evidence& evidence, const Scope& scope, const Catalogue& catalogue) {
  Decision decision;
  for (const Finding& problem : evidence.problems) add_problem(problem, scope, catalogue, decision.findings);
  for (const TestOutcome& test : evidence.tests) add_test(test, catalogue, decision.findings);
  std::ranges::stable_sort(decision.findings, std::greater{}, &Finding::severity);
  const bool judged =
      evidence.audited || !evidence.problems.empty() ||
      std::ranges::any_of(evidence.tests, [](const TestOutcome& one) { return one.state != TestState::not_run; });
  const Severity worst = decision.findings.empty() ? Severity::info : decision.findings.front().severity;
  decision.verdict = worst == Severity::fault              ? Fitness::fail
                     : !judged || !evidence.unseen.empty() ? Fitness::unknown
                     : worst == Severity::warning          ? Fitness::unsure
                                                           : Fitness::pass;
  if (decision.verdict == Fitness::unknown)
    decision.why_not = evidence.unseen.empty() ? "no test came to its end" : evidence.unseen.front();
  return decision;
}

}  // namespace assay::gate
