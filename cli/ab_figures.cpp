#include "cli/ab_figures.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace assay::cli {

namespace {

std::vector<ab::Figure> lines_of(const std::string& output, const std::string& place) {
  std::vector<ab::Figure> figures;
  for (const report::ForeignFigure& one : report::read_lines(output, place).figures) {
    if (one.status != Status::ok)
      throw UsageError(fmt::format("{}: {} has no figure: {} {}", place, in_quotes(one.name), name_of(one.status),
                                   one_line(one.reason)));
    figures.push_back({one.name, median(one.values), one.unit, one.better});
  }
  return figures;
}

}  // namespace

// Nothing if the output is no lines. A line that says that a case failed is one beside lines with figures.
std::optional<std::vector<ab::Figure>> lines_if_any(const std::string& output) {
  try {
    const auto figures = report::read_lines(output, "output").figures;
    if (std::all_of(figures.begin(), figures.end(), [](const auto& one) { return one.values.empty(); }))
      return std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return lines_of(output, "output");
}

ab::Figure figure_in(const Json& line, const std::string& metric, const std::string& place) {
  std::vector<std::string> numbers;
  for (const auto& [name, value] : line.items())
    if (value.is_number()) numbers.push_back(name);
  const auto found = line.contains(metric) ? line.find(metric) : line.find("value");
  if (found == line.end() || !found->is_number())
    throw UsageError(fmt::format("{} has no number {}{}", place, in_quotes(metric), suggestion(metric, numbers)));
  const auto better = line.find("better");
  if (better == line.end() || (*better != "higher" && *better != "lower"))
    throw UsageError(fmt::format("{} has no \"better\": \"higher\" or \"lower\"", place));
  const auto unit = line.find("unit");
  return {metric, found->get<double>(), unit != line.end() && unit->is_string() ? unit->get<std::string>() : "1",
          *better == "higher" ? Better::higher : Better::lower};
}

Json last_object(const std::string& output) {
  try {
    if (Json line = parse_untrusted(last_lines(output, 1)); line.is_object()) return line;
  } catch (const Error&) {
    // lines, or nothing that can be read
  }
  return nullptr;
}

std::vector<ab::Figure> figures_of(const std::string& metric, const std::string& output, double seconds, char side) {
  if (metric == "time") return {{"time", seconds, "s", Better::lower}};
  const std::string place = fmt::format("{}: output", side);
  if (metric == "lines") {
    auto figures = lines_of(output, place);
    if (figures.empty()) throw UsageError(fmt::format("{} has no line \"name value unit better\"", place));
    return figures;
  }
  const std::string last = last_lines(output, 1), last_place = fmt::format("{}: the last line of its output", side);
  if (const Json line = last_object(output); line.is_object()) return {figure_in(line, metric, last_place)};
  const auto all = lines_if_any(output);
  if (!all)
    throw UsageError(fmt::format("{} is no JSON object: {}", last_place, last.empty() ? "nothing" : in_quotes(last)));
  std::vector<std::string> names;
  for (const ab::Figure& one : *all) {
    if (one.name == metric) return {one};
    names.push_back(one.name);
  }
  throw UsageError(fmt::format("{} has no line {}{}", place, in_quotes(metric), suggestion(metric, names)));
}

std::string metric_from(const std::string& output) { return lines_if_any(output) ? "lines" : "time"; }

}  // namespace assay::cli
