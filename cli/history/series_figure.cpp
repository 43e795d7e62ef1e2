#include "cli/history/series_figure.h"

#include "cli/ab_figures.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace assay::cli {

namespace {

// As the tool has it that it was imported from, and as the history has it.
std::vector<std::string> case_names(const store::Identity& id) {
  constexpr std::string_view imported = "imported/";
  if (!id.key.starts_with(imported)) return {id.key};
  return {id.key.substr(imported.size()), id.key};
}

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string direction(Better better) { return better == Better::higher ? "higher" : "lower"; }

}  // namespace

SeriesFigure::SeriesFigure(const history::History& history, std::vector<std::size_t> wanted, std::string metric)
    : history_(history), wanted_(std::move(wanted)), metric_(std::move(metric)) {
  if (metric_.empty() || metric_ == "lines" || metric_ == "value") return;
  const auto fits = [&](std::size_t one) {
    const store::Identity& id = history_.series[one].identity;
    if (metric_ == "time") return id.unit == "s" && id.better == Better::lower;
    return metric_ == id.metric || is_in(names_of(one), metric_);
  };
  if (std::any_of(wanted_.begin(), wanted_.end(), fits)) return;
  // Another name may be what the command calls the figure, but not if the history knows what has that name.
  const bool known = std::any_of(history_.series.begin(), history_.series.end(), [&](const auto& one) {
    return one.identity.metric == metric_ || is_in(case_names(one.identity), metric_);
  });
  if (known || metric_ == "time")
    throw UsageError(fmt::format("--metric {}: that is not the figure to be confirmed: {}", metric_,
                                 history_.series[wanted_.front()].title));
}

// What a line of the series may be called.
std::vector<std::string> SeriesFigure::names_of(std::size_t series) const {
  const store::Identity& id = history_.series[series].identity;
  const bool alone = std::none_of(history_.series.begin(), history_.series.end(), [&](const auto& other) {
    return other.identity.key == id.key && other.identity.unit == id.unit && other.identity.better == id.better &&
           other.identity.metric != id.metric;
  });
  std::vector<std::string> names;
  for (const std::string& name : case_names(id)) {
    if (alone) names.push_back(name);
    names.push_back(name + ":" + id.metric);
  }
  return names;
}

std::optional<ab::Figure> SeriesFigure::line_of(std::size_t series, const std::vector<ab::Figure>& lines) const {
  const store::Identity& id = history_.series[series].identity;
  const std::vector<std::string> names = names_of(series);
  for (const ab::Figure& line : lines)
    if (is_in(names, line.name) && line.unit == id.unit && line.better == id.better) return line;
  return std::nullopt;
}

std::vector<ab::Figure> SeriesFigure::read(const FinishedProcess& done, char side) {
  const history::TrackedSeries& first = history_.series[wanted_.front()];
  const std::string wanted = fmt::format("{} in {} (better when {})", in_quotes(names_of(wanted_.front()).front()),
                                         first.identity.unit, direction(first.identity.better));
  if (metric_ == "time") return {{first.title, done.seconds, "s", Better::lower}};
  const auto lines = done.whole ? lines_if_any(done.output) : std::nullopt;
  if (lines) {
    for (const std::size_t one : std::vector(wanted_)) {
      if (!metric_.empty() && metric_ != "lines" && metric_ != history_.series[one].identity.metric &&
          !is_in(names_of(one), metric_))
        continue;
      if (const auto line = line_of(one, *lines)) {
        wanted_ = {one};
        return {*line};
      }
    }
    std::vector<std::string> has;
    for (const ab::Figure& line : *lines)
      if (has.size() < 5) has.push_back(fmt::format("{} in {}", in_quotes(line.name), line.unit));
    throw UsageError(fmt::format("{}: its output has no line {}, but {}{}", side, wanted, fmt::join(has, ", "),
                                 lines->size() > has.size() ? ", ..." : ""));
  }
  const Json object = last_object(done.output);
  const std::string place = fmt::format("{}: the last line of its output", side);
  if (metric_ == "lines" || !object.is_object())
    throw UsageError(fmt::format("{} is neither a JSON object with the figure nor a line {}: {}", place, wanted,
                                 in_quotes(last_lines(done.output, 1))));
  wanted_.resize(1);
  ab::Figure figure = figure_in(object, metric_.empty() ? first.identity.metric : metric_, place);
  const auto named = [&](const char* member, const std::vector<std::string>& right) {
    const std::string text = text_member(object, fmt::format("/{}", member));
    if (!text.empty() && !is_in(right, text))
      throw UsageError(
          fmt::format("{} has \"{}\": {}, not {}", place, member, in_quotes(text), in_quotes(right.front())));
  };
  named("case", case_names(first.identity));
  named("metric", {first.identity.metric});
  named("unit", {first.identity.unit});
  named("better", {direction(first.identity.better)});
  figure.name = first.title, figure.unit = first.identity.unit;
  return {figure};
}

}  // namespace assay::cli
