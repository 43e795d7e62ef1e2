#include "reports/references/published.h"

#include "harness/core/configs.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/fitness/floors/metric_units.h"
#include "harness/machine/hardware.h"
#include "harness/runs/filled_text.h"
#include "harness/runs/machine.h"
#include "reports/model/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace assay::report {

namespace fs = std::filesystem;

namespace {

constexpr int published_schema = 1;

// A quantity, or [low, high].
Interval read_value(const Cursor& at, const std::string& unit) {
  const auto read = [&](const Cursor& one) {
    return fitness::read_quantity(one, unit, 0, std::numeric_limits<double>::max()).value_or(0);
  };
  if (!at.json().is_array()) {
    const double value = read(at);
    return {value, value};
  }
  const auto ends = at.elements();
  if (ends.size() != 2) {
    at.error("must be a quantity, or the lowest and the highest");
    return {};
  }
  const Interval value{read(ends[0]), read(ends[1])};
  if (value.high < value.low) at.error("must begin with the lower end");
  return value;
}

PublishedFigure read_figure(const Cursor& at, const std::vector<std::string>& hardware) {
  static const std::vector<std::string> names = fitness::selection_members({"value", "by"});
  PublishedFigure figure;
  if (!at.object()) return figure;
  at.only(names);
  fitness::read_selection(at, figure);
  if (!blank(figure.metric) && fitness::units_of(figure.metric, "").empty())
    at.need("metric")->error(fmt::format("unknown metric {}{}", in_quotes(figure.metric),
                                         suggestion(figure.metric, fitness::known_metrics())));
  figure.hardware = hardware;
  figure.by = filled_text(at.need("by"));
  if (const auto value = at.need("value")) figure.value = read_value(*value, figure.unit);
  return figure;
}

std::vector<PublishedFigure> read_file(const fs::path& file) {
  return read_strictly(file, published_schema, {"schema", "description", "match", "figures"}, [](const Cursor& root) {
    root.text_of("description");
    std::vector<std::string> hardware;
    if (const auto match = root.need("match"))
      for (const Cursor& pattern : match->elements()) hardware.push_back(filled_text(pattern));
    std::vector<PublishedFigure> figures;
    if (const auto list = root.need("figures"))
      for (const Cursor& each : list->elements()) figures.push_back(read_figure(each, hardware));
    return figures;
  });
}

}  // namespace

std::vector<PublishedFigure> load_published(const fs::path& folder) {
  std::vector<PublishedFigure> all;
  for (const fs::path& file : json_files(folder)) std::ranges::move(read_file(file), std::back_inserter(all));
  return all;
}

bool is_of(const PublishedFigure& figure, const Entry& entry, const Metric& metric) {
  if (figure.metric != metric.name || figure.unit != metric.unit ||
      !fitness::key_matches(figure.key, entry.record->key) || !fitness::concerns(figure, entry) ||
      !fitness::protocol_difference(figure, *entry.record).empty())
    return false;
  const std::vector<std::string> names = hardware_names(*entry.run, *entry.record);
  return std::ranges::any_of(figure.hardware, [&](const std::string& pattern) {
    return std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); });
  });
}

std::string published_text(const PublishedFigure& figure) {
  const bool range = figure.value.low != figure.value.high;
  return fmt::format(
      "{}: {}{}", figure.by,
      range ? interval_cell(figure.value, figure.unit).text : format_quantity(figure.value.low, figure.unit),
      figure.note.empty() ? "" : ", " + figure.note);
}

Json published_json(const PublishedFigure& figure) {
  return {{"low", figure.value.low}, {"high", figure.value.high}, {"unit", figure.unit},
          {"by", figure.by},         {"source", figure.source},   {"note", figure.note}};
}

}  // namespace assay::report
