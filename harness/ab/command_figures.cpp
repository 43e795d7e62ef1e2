#include "harness/ab/command_figures.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/foreign.h"

#include <fmt/format.h>

#include <algorithm>
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

CommandFigures::CommandFigures(std::string metric, std::vector<std::string> cases, std::optional<Better> better)
    : metric_(std::move(metric)), cases_(std::move(cases)), better_(better) {}

std::vector<Figure> CommandFigures::read_lines_of(const CommandOutput& output, char side) const {
  const std::string place = fmt::format("{}: output", side);
  if (!output.whole) throw UsageError(fmt::format("{}: its output is too long for lines", side));
  std::vector<Figure> figures;
  for (const ForeignFigure& one : read_lines(std::string(output.text), place).figures()) {
    if (one.status != Status::ok)
      throw UsageError(fmt::format("{}: {} has no figure: {} {}", place, in_quotes(one.name), name_of(one.status),
                                   one_line(one.reason)));
    figures.push_back({one.name, median(one.values), one.unit, one.better});
  }
  if (figures.empty()) throw UsageError(fmt::format("{} has no line \"name value unit better\"", place));
  if (cases_.empty()) return figures;
  for (const std::string& name : cases_)
    if (std::ranges::none_of(figures, [&](const Figure& one) { return one.name == name; }))
      throw UsageError(fmt::format("{}: output has no line {}; its first is {}", side, in_quotes(name),
                                   in_quotes(figures.front().name)));
  std::erase_if(figures, [&](const Figure& one) { return std::ranges::find(cases_, one.name) == cases_.end(); });
  return figures;
}

std::vector<Figure> CommandFigures::read(const CommandOutput& output, char side) {
  if (metric_.empty()) {
    const std::vector<ForeignFigure> lines = lines_of(output);
    // A line that says that a case failed is one beside lines with figures.
    const bool any = std::ranges::any_of(lines, [](const auto& one) { return !one.values.empty(); });
    if (!cases_.empty() && output.whole && lines.empty())
      throw UsageError(
          fmt::format("{}: its output is not \"name value unit better\" on each line, where --case {} is looked for; "
                      "--metric NAME takes another figure, --metric time the wall time",
                      side, in_quotes(cases_.front())));
    metric_ = any || !cases_.empty() ? "lines" : "time";
  }
  if (metric_ == "time") return {{"time", output.seconds, "s", Better::lower}};
  if (metric_ == "lines") return read_lines_of(output, side);
  const PrintedFigure found = named_figure(output, metric_, better_, fmt::format("{}: its output", side));
  if (!found.remark.empty()) remarks_.insert(found.remark);
  return {{metric_, found.value, *found.unit, *found.better}};
}

}  // namespace assay::ab
