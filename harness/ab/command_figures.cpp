#include "harness/ab/command_figures.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace assay::ab {

namespace {

// The lines that an output consists of; none if there is anything else.
std::vector<ForeignFigure> lines_of(const CommandOutput& output) {
  if (!output.whole) return {};
  try {
    return read_lines(std::string(output.text), "output").figures();
  } catch (const UsageError&) {
    return {};
  }
}

}  // namespace

CommandFigures::CommandFigures(std::string metric, std::vector<std::string> cases, std::optional<Better> better,
                               ToolReader tool)
    : metric_(std::move(metric)), cases_(std::move(cases)), better_(better), tool_(std::move(tool)) {}

std::vector<Figure> CommandFigures::cases_of(const ForeignFile& file, const std::string& place) const {
  std::vector<Figure> figures;
  std::set<std::string> found;
  std::map<std::string, std::string> metrics;  // the first of each name
  for (const ForeignFigure& one : file.figures()) {
    const std::string whole = one.name + ":" + one.metric;
    const auto is_wanted = [&](const std::string& name) {
      return std::ranges::find(cases_, name) != cases_.end() && (found.insert(name), true);
    };
    const bool by_metric = is_wanted(whole);
    if (!by_metric && !cases_.empty() && !is_wanted(one.name)) continue;
    if (one.status != Status::ok)
      throw UsageError(fmt::format("{} has no figure: {} {}", fmt::format("{}: {}", place, in_quotes(one.name)),
                                   name_of(one.status), one_line(one.reason)));
    if (metrics.try_emplace(one.name, one.metric).first->second != one.metric && !by_metric) continue;
    figures.push_back({by_metric ? whole : one.name, median(one.values), one.unit, one.better});
  }
  for (const std::string& name : cases_)
    if (!found.contains(name)) {
      const auto all = file.figures();
      throw UsageError(fmt::format("{} has no case {}{}", place, in_quotes(name),
                                   all.empty() ? "" : "; its first is " + in_quotes(all.front().name)));
    }
  return figures;
}

std::vector<Figure> CommandFigures::read_lines_of(const CommandOutput& output, char side) const {
  const std::string place = fmt::format("{}: output", side);
  if (!output.whole) throw UsageError(fmt::format("{}: its output is too long for lines", side));
  std::vector<Figure> figures = cases_of(read_lines(std::string(output.text), place), place);
  if (figures.empty()) throw UsageError(fmt::format("{} has no line \"name value unit better\"", place));
  return figures;
}

std::vector<Figure> CommandFigures::read_tool(const CommandOutput& output, char side) const {
  const std::string place = fmt::format("{}: output", side);
  const auto found = output.whole ? tool_(std::string(output.text), place) : std::nullopt;
  if (!found) throw UsageError(fmt::format("{} is not {}'s, as A's first one was", place, metric_));
  return cases_of(found->file, place);
}

std::vector<Figure> CommandFigures::read(const CommandOutput& output, char side) {
  if (metric_.empty()) {
    const std::vector<ForeignFigure> lines = lines_of(output);
    // A line that says that a case failed is one beside lines with figures.
    const bool any = std::ranges::any_of(lines, [](const auto& one) { return !one.values.empty(); });
    const auto of_tool = any || !tool_ || !output.whole
                             ? std::nullopt
                             : tool_(std::string(output.text), fmt::format("{}: output", side));
    of_tool_ = of_tool && !of_tool->file.figures().empty();
    if (!of_tool_ && !cases_.empty() && output.whole && lines.empty())
      throw UsageError(
          fmt::format("{}: its output, of which --case {} is to be judged, is neither lines \"name value unit better\" "
                      "alone nor a known "
                      "tool's JSON; --metric NAME finds a figure in any other",
                      side, in_quotes(cases_.front())));
    metric_ = of_tool_ ? of_tool->format : any || !cases_.empty() ? "lines" : "time";
  }
  if (of_tool_) return read_tool(output, side);
  if (metric_ == "time") return {{"time", output.seconds, "s", Better::lower}};
  if (metric_ == "lines") return read_lines_of(output, side);
  const PrintedFigure found = named_figure(output, metric_, better_, fmt::format("{}: its output", side));
  if (!found.remark.empty()) remarks_.insert(found.remark);
  return {{metric_, found.value, *found.unit, *found.better}};
}

}  // namespace assay::ab
