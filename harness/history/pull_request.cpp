#include "harness/history/pull_request.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace assay::history {

namespace {

std::string tool_name(const std::string& key) {
  constexpr std::string_view imported = "imported/";
  return key.starts_with(imported) ? key.substr(imported.size()) : key;
}

}  // namespace

std::vector<std::string> by_suspicion(const History& history) {
  struct Interest {
    double suspected = 0;  // the largest step that is open
    int changes = 0;       // events of the past
    double noise = INFINITY;
  };
  std::map<std::string, Interest> cases;
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    Interest& one = cases[tool_name(history.series[i].identity.key)];
    if (i < history.analysis.series.size()) one.noise = std::min(one.noise, history.analysis.series[i].sigma);
  }
  const auto of = [&](std::size_t series) -> Interest& {
    return cases[tool_name(history.series[series].identity.key)];
  };
  for (const Suspect& one : history.found.suspects)
    if (!one.dismissed) of(one.series).suspected = std::max(of(one.series).suspected, std::abs(one.change.shift));
  for (const Event& event : history.found.events)
    for (const EventSeries& one : event.series) {
      if (event.state == EventState::open)
        of(one.series).suspected = std::max(of(one.series).suspected, std::abs(one.shift));
      ++of(one.series).changes;
    }
  std::vector<std::string> order;
  for (const auto& [name, interest] : cases) order.push_back(name);
  std::ranges::stable_sort(order, [&](const std::string& a, const std::string& b) {
    const auto rank = [&](const Interest& one) { return std::tuple(-one.suspected, -one.changes, one.noise); };
    return rank(cases[a]) < rank(cases[b]);
  });
  return order;
}

std::string expression_of(const std::vector<std::string>& cases) {
  std::string all;
  for (const std::string& name : cases) {
    all += all.empty() ? "^(" : "|";
    for (const char c : name) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) all += '\\';
      all += c;
    }
  }
  return all.empty() ? "." : all + ")$";
}

std::string with_cases(std::string command, const std::vector<std::string>& cases) {
  const std::string word = shell_word(expression_of(cases));
  for (std::size_t at = command.find(cases_placeholder); at != command.npos;
       at = command.find(cases_placeholder, at + word.size()))
    command.replace(at, std::string_view(cases_placeholder).size(), word);
  return command;
}

std::size_t PullRequestResult::count(Direction verdict) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cases, [&](const ab::Case& one) { return one.outcome.verdict == verdict; }));
}

ExitCode PullRequestResult::code() const {
  if (count(Direction::slower) > 0) return ExitCode::failed;
  return cases.empty() || count(Direction::unknown) > 0 || !not_measured.empty() ? ExitCode::no_data : ExitCode::ok;
}

PullRequestResult compare_builds(const std::vector<std::string>& cases, const PullRequest& asked,
                                 const std::filesystem::path& base, const std::filesystem::path& head,
                                 const ab::ToolReader& tool, const Measure& measure) {
  const std::size_t place = asked.run.find(cases_placeholder);
  const bool chosen = place != asked.run.npos;
  std::vector<std::vector<std::string>> batches;
  for (std::size_t i = 0; chosen && i < cases.size(); i += asked.at_once)
    batches.emplace_back(cases.begin() + static_cast<std::ptrdiff_t>(i),
                         cases.begin() + static_cast<std::ptrdiff_t>(std::min(cases.size(), i + asked.at_once)));
  if (batches.empty()) batches.emplace_back();
  const Clock::time_point start = Clock::now();
  PullRequestResult made;
  made.error = asked.error;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double left = asked.budget - seconds_since(start);
    if (left <= 0 || (i > 0 && !made.not_measured.empty())) {
      made.not_measured.insert(made.not_measured.end(), batches[i].begin(), batches[i].end());
      continue;
    }
    const std::string run = with_cases(asked.run, batches[i]);
    ab::CommandFigures figures(asked.metric, {}, {}, tool);
    const ab::Result result =
        measure({"history check", shell_in_folder(base, run), shell_in_folder(head, run),
                 [&](const CommandOutput& output, char side) { return figures.read(output, side); }},
                {.tolerance = asked.tolerance,
                 .error = asked.error / static_cast<double>(batches.size()),
                 .budget = left,
                 .seed = asked.seed + i});
    made.remarks.insert(figures.remarks().begin(), figures.remarks().end());
    if (figures.metric() == "time") made.remarks.insert("the command prints no cases: its wall time is judged");
    made.cases.insert(made.cases.end(), result.cases.begin(), result.cases.end());
    made.one_sided.insert(made.one_sided.end(), result.one_sided.begin(), result.one_sided.end());
    if (result.cases.empty()) made.not_measured.insert(made.not_measured.end(), batches[i].begin(), batches[i].end());
  }
  made.seconds = seconds_since(start);
  return made;
}

}  // namespace assay::history
