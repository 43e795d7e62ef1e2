#include "harness/history/series_figure.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace assay::history {

namespace {

constexpr std::string_view gbench = "gbench:";

// As the tool has it that it was imported from, and as the history has it.
std::vector<std::string> case_names(const store::SeriesIdentity& id) {
  constexpr std::string_view imported = "imported/";
  if (!id.key.starts_with(imported)) return {id.key};
  return {id.key.substr(imported.size()), id.key};
}

bool is_listed(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

SeriesFigure::SeriesFigure(const History& history, std::vector<std::size_t> wanted, std::string metric)
    : history_(&history), wanted_(std::move(wanted)), metric_(std::move(metric)) {
  if (metric_.empty() || metric_ == "lines" || metric_ == "value") return;
  const auto fits = [&](std::size_t one) {
    const store::SeriesIdentity& id = history_->series[one].identity;
    return metric_ == "time" ? id.unit == "s" && id.better == Better::lower : is_named(one);
  };
  if (std::ranges::any_of(wanted_, fits)) return;
  // Another name may be what the command calls the figure, but not if the history knows what has that name.
  for (std::size_t one = 0; one < history_->series.size(); ++one)
    if (metric_ == "time" || is_named(one) || is_listed(case_names(history_->series[one].identity), metric_))
      throw UsageError(fmt::format("--metric {}: that is not the figure to be confirmed: {}", metric_,
                                   history_->series[wanted_.front()].title));
}

// What a figure of the series may be called.
std::vector<std::string> SeriesFigure::names_of(std::size_t series) const {
  const store::SeriesIdentity& id = history_->series[series].identity;
  const bool alone = std::ranges::none_of(history_->series, [&](const auto& other) {
    return other.identity.key == id.key && other.identity.unit == id.unit && other.identity.better == id.better &&
           other.identity.metric != id.metric;
  });
  std::vector<std::string> names;
  for (const std::string& name : case_names(id)) {
    if (alone) names.push_back(name);
    names.push_back(name + ":" + id.metric);
    names.push_back(fmt::format("{}{}:{}", gbench, name, id.metric));
  }
  return names;
}

// Whether --metric names the series.
bool SeriesFigure::is_named(std::size_t series) const {
  const store::SeriesIdentity& id = history_->series[series].identity;
  return metric_ == id.metric || is_listed(names_of(series), metric_);
}

PrintedFigure SeriesFigure::find(const CommandOutput& output, const std::string& place) {
  const bool any = metric_.empty() || metric_ == "lines" || metric_ == "value";
  std::vector<std::size_t> meant;
  for (const std::size_t one : wanted_)
    if (any || is_named(one)) meant.push_back(one);
  const auto like = [&](std::size_t one, std::vector<std::string> names) {
    const store::SeriesIdentity& id = history_->series[one].identity;
    return WantedFigure{std::move(names), id.unit, id.better, true};
  };
  for (const std::size_t one : meant)
    if (const auto found = find_figure(output, like(one, names_of(one)), place)) {
      wanted_ = {one};
      return *found;
    }
  wanted_ = {meant.empty() ? wanted_.front() : meant.front()};
  const std::string& metric = history_->series[wanted_.front()].identity.metric;
  WantedFigure wanted = like(wanted_.front(), names_of(wanted_.front()));
  if (metric_ == "lines") return printed_figure(output, wanted, place);
  if (!metric_.empty()) {
    wanted.names = {metric_}, wanted.exact = false;
    return printed_figure(output, wanted, place);
  }
  for (const std::string& name : {metric, std::string("value")})
    if (const auto found = find_figure(output, like(wanted_.front(), {name}), place)) return *found;
  wanted.names.push_back(metric);
  return printed_figure(output, wanted, place);
}

ab::Figure SeriesFigure::read(const CommandOutput& output, char side) {
  if (metric_ == "time") return {history_->series[wanted_.front()].title, output.seconds, "s", Better::lower};
  const std::string place = fmt::format("{}: its output", side);
  const PrintedFigure found = find(output, place);
  if (!found.remark.empty()) remarks_.insert(found.remark);
  const TrackedSeries& series = history_->series[wanted_.front()];
  const store::SeriesIdentity& id = series.identity;
  const auto check = [&](const char* member, const std::string& text, const std::vector<std::string>& right) {
    if (!text.empty() && !is_listed(right, text))
      throw UsageError(
          fmt::format("{} has \"{}\": {}, not {}", place, member, in_quotes(text), in_quotes(right.front())));
  };
  check("case", found.case_name, case_names(id));
  check("metric", found.metric, {id.metric});
  check("better", found.better ? word_of(*found.better) : "", {word_of(id.better)});
  const std::string unit = found.unit.value_or(id.unit);
  const auto value = in_unit(found.value, unit, id.unit);
  if (!value) check("unit", unit, {id.unit});
  return {series.title, value.value_or(found.value), id.unit, id.better};
}

}  // namespace assay::history
