#include "reports/scaling/priced.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

const char* scaling_word(Mode mode) { return mode == Mode::strong ? "strong" : "weak"; }

PricedProjection priced(const Series& series, Projection projection, const PriceSource& prices) {
  const Entry& entry = series.points.back().entries.front();
  const RunMachine machine = machine_of(*entry.run);
  const Record& record = *entry.record;
  const int nodes = std::max(1, record.world_nodes);
  return {series, std::move(projection), cost_of(entry, prices),
          std::max((record.world_ranks + nodes - 1) / nodes, record.device == "cpu" ? 1 : machine.gpus)};
}

Json json_of_range(const std::optional<Estimate>& estimate) {
  if (!estimate) return {};
  const auto& interval = estimate->interval;
  return {{"value", estimate->value},
          {"low", interval ? Json(interval->low) : Json()},
          {"high", interval ? Json(interval->high) : Json()}};
}

std::string with_range(const Estimate& estimate, const auto& format) {
  const std::string value = format(estimate.value);
  return estimate.interval
             ? fmt::format("{} ({} to {})", value, format(estimate.interval->low), format(estimate.interval->high))
             : value;
}

Json json_of_one(const PricedProjection& one) {
  const Series& series = one.series;
  const Projection& projection = one.projection;
  Json json = {{"title", series.title},
               {"scaling", scaling_word(series.mode)},
               {"figure", series.figure},
               {"model", projection.model},
               {"residual", projection.rms},
               {"measured", Json::array()},
               {"hold_out",
                {{"ranks", projection.held_out},
                 {"measured", projection.held_out_time},
                 {"predicted", projection.held_out_predicted},
                 {"error", projection.error}}},
               {"projected", Json::array()}};
  for (const WorldPoint& point : series.points)
    json["measured"].push_back({{"ranks", point.ranks}, {"seconds", json_of_range(point.time)}});
  for (const Projected& size : projection.sizes) {
    const auto usd = one.usd(size);
    json["projected"].push_back({{"ranks", size.ranks},
                                 {"seconds", json_of_range(size.time)},
                                 {"efficiency", size.time ? json_of_range(size.efficiency) : Json()},
                                 {"usd", json_of_range(usd)},
                                 {"usd_per", usd ? Json(one.cost->per) : Json()},
                                 {"measured", size.measured},
                                 {"extrapolated", size.extrapolated},
                                 {"assumption", or_null(size.assumption)}});
  }
  return json;
}

std::string text_of_one(const PricedProjection& one) {
  const Series& series = one.series;
  const Projection& projection = one.projection;
  const auto seconds = [](double value) { return format_quantity(value, "s"); };
  const auto dollars = [](double value) { return fmt::format("{:.3g}", value); };
  std::vector<int> sizes;
  for (const WorldPoint& point : series.points) sizes.push_back(point.ranks);
  std::string text = fmt::format(
      "{}, {} scaling, measured at {} ranks\n"
      "  by {}, residual {}; {} ranks from the smaller sizes: {}, measured {} ({:+.1f} %)\n",
      one_line(series.title), scaling_word(series.mode), fmt::join(sizes, ", "), projection.model,
      format_percent(projection.rms), projection.held_out, seconds(projection.held_out_predicted),
      seconds(projection.held_out_time), 100 * projection.error);
  for (const Projected& size : projection.sizes) {
    text += fmt::format("  {}: ", plural(size.ranks, "rank"));
    if (size.time)
      text += fmt::format("{}, efficiency {}", with_range(*size.time, seconds),
                          with_range(size.efficiency, format_percent));
    else
      text += "cannot say, within a factor of ten";
    if (const auto usd = one.usd(size)) {
      const HourlyPrice& price = one.cost->price;
      text += fmt::format(", USD {} per {} ({}{})", with_range(*usd, dollars), one.cost->per, name_of(price.basis),
                          price.date.empty() ? "" : ", price of " + dated(price.date, price.age));
    }
    if (size.measured) text += ", measured";
    if (size.extrapolated)
      text += fmt::format("; extrapolated to {:.3g} x the largest measured: rests on the assumption {}",
                          static_cast<double>(size.ranks) / series.points.back().ranks, size.assumption);
    text += "\n";
  }
  return text;
}

}  // namespace

std::optional<Estimate> PricedProjection::usd(const Projected& size) const {
  if (!cost || !size.time) return std::nullopt;
  const WorldPoint& largest = series.points.back();
  const double machines = std::ceil(static_cast<double>(size.ranks) / per_machine);
  double factor = cost->usd / largest.time.value * machines / cost->machines;
  if (series.mode == Mode::weak) factor *= static_cast<double>(largest.ranks) / size.ranks;
  return scaled(*size.time, factor);
}

Projections projections_of(const RunSet& runs, std::span<const int> ranks, const PriceSource& prices) {
  const SeriesSet found = find_series(runs, Likenesses(runs));
  Projections made;
  made.max_worlds = found.lone.empty() ? 0 : 1;
  for (const Series& series : found.series) {
    made.max_worlds = std::max(made.max_worlds, series.points.size());
    if (auto projection = project(series, ranks)) made.all.push_back(priced(series, std::move(*projection), prices));
  }
  return made;
}

Json to_json(const Projections& found) {
  Json json = {{"schema", 1}, {"series", Json::array()}};
  for (const PricedProjection& one : found.all) json["series"].push_back(json_of_one(one));
  return json;
}

std::string to_text(const Projections& found) {
  std::string text;
  for (const PricedProjection& one : found.all) text += text_of_one(one);
  return text;
}

}  // namespace assay::report::scaling
