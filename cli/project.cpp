// assay project: times, efficiency and cost at world sizes that were not measured, from runs at others.
#include "cli/command.h"
#include "cli/files.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "reports/cost/cost.h"
#include "reports/data/words.h"
#include "reports/scaling/projection.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct ProjectOptions {
  std::vector<std::string> dirs;
  std::string ranks;
  report::PriceFlags prices;
  bool json = false;
};

struct ProjectedSeries {
  const report::scaling::Series* series = nullptr;
  report::scaling::Projection projection;
  std::optional<report::Cost> cost;  // of the largest measured world
  int per_machine = 1;               // ranks

  // As many machines as there, unless those ranks need more; as many items a step, unless each rank has its own.
  std::optional<report::Estimate> usd(const report::scaling::Projected& size) const;
};

std::optional<report::Estimate> ProjectedSeries::usd(const report::scaling::Projected& size) const {
  if (!cost || !size.time) return std::nullopt;
  const report::scaling::WorldPoint& largest = series->points.back();
  const double machines = std::ceil(static_cast<double>(size.ranks) / per_machine);
  double factor = cost->usd / largest.time.value * machines / cost->machines;
  if (series->mode == report::scaling::Mode::weak) factor *= static_cast<double>(largest.ranks) / size.ranks;
  return report::scaling::scaled(*size.time, factor);
}

ProjectedSeries priced(const report::scaling::Series& series, report::scaling::Projection projection,
                       const report::PriceSource& prices) {
  ProjectedSeries made{&series, std::move(projection), std::nullopt, 1};
  const report::Entry& entry = series.points.back().entries.front();
  made.cost = report::cost_of(entry, prices);
  const report::Machine machine = report::machine_of(*entry.run);
  const Record& record = *entry.record;
  const int nodes = std::max(1, record.world_nodes);
  made.per_machine = std::max((record.world_ranks + nodes - 1) / nodes, record.device == "cpu" ? 1 : machine.gpus);
  return made;
}

Json json_of(const report::Estimate& estimate) {
  const auto& interval = estimate.interval;
  return {{"value", estimate.value},
          {"low", interval ? Json(interval->low) : Json()},
          {"high", interval ? Json(interval->high) : Json()}};
}

Json json_of(const ProjectedSeries& one) {
  const report::scaling::Series& series = *one.series;
  const report::scaling::Projection& projection = one.projection;
  Json json = {{"title", series.title},
               {"scaling", series.mode == report::scaling::Mode::strong ? "strong" : "weak"},
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
  for (const report::scaling::WorldPoint& point : series.points)
    json["measured"].push_back({{"ranks", point.ranks}, {"seconds", json_of(point.time)}});
  for (const report::scaling::Projected& size : projection.sizes) {
    const auto usd = one.usd(size);
    json["projected"].push_back({{"ranks", size.ranks},
                                 {"seconds", size.time ? json_of(*size.time) : Json()},
                                 {"efficiency", size.time ? json_of(size.efficiency) : Json()},
                                 {"usd", usd ? json_of(*usd) : Json()},
                                 {"usd_per", usd ? Json(one.cost->per) : Json()},
                                 {"measured", size.measured},
                                 {"extrapolated", size.extrapolated},
                                 {"assumption", size.assumption.empty() ? Json() : Json(size.assumption)}});
  }
  return json;
}

std::string with_range(const report::Estimate& estimate, const auto& format) {
  const std::string value = format(estimate.value);
  return estimate.interval
             ? fmt::format("{} ({} to {})", value, format(estimate.interval->low), format(estimate.interval->high))
             : value;
}

void print_projected(const ProjectedSeries& one) {
  const report::scaling::Series& series = *one.series;
  const report::scaling::Projection& projection = one.projection;
  const auto seconds = [](double value) { return format_quantity(value, "s"); };
  const auto percent = [](double value) { return format_percent(value); };
  const auto dollars = [](double value) { return fmt::format("{:.3g}", value); };
  std::vector<int> sizes;
  for (const report::scaling::WorldPoint& point : series.points) sizes.push_back(point.ranks);
  fmt::print("{}, {} scaling, measured at {} ranks\n", one_line(series.title),
             series.mode == report::scaling::Mode::strong ? "strong" : "weak", fmt::join(sizes, ", "));
  fmt::print("  by {}, residual {}; {} ranks from the smaller sizes: {}, measured {} ({:+.1f} %)\n", projection.model,
             percent(projection.rms), projection.held_out, seconds(projection.held_out_predicted),
             seconds(projection.held_out_time), 100 * projection.error);
  for (const report::scaling::Projected& size : projection.sizes) {
    fmt::print("  {}: ", report::plural(size.ranks, "rank"));
    if (size.time) {
      fmt::print("{}, efficiency {}", with_range(*size.time, seconds), with_range(size.efficiency, percent));
      if (const auto usd = one.usd(size)) {
        const report::HourlyPrice& price = one.cost->price;
        fmt::print(", USD {} per {} ({}{})", with_range(*usd, dollars), one.cost->per, report::name_of(price.basis),
                   price.date.empty() ? "" : ", price of " + price.date);
      }
    } else {
      fmt::print("cannot say, within a factor of ten");
    }
    if (size.measured) fmt::print(", measured");
    if (size.extrapolated)
      fmt::print("; extrapolated to {:.3g} x the largest measured: rests on the assumption {}",
                 static_cast<double>(size.ranks) / series.points.back().ranks, size.assumption);
    fmt::print("\n");
  }
}

ExitCode run_project(const ProjectOptions& options) {
  const std::vector<int> ranks = parse_ranks(options.ranks);
  const report::RunSet runs(read_runs(options.dirs), report::Injected::exclude);
  const report::PriceSource prices = report::load_prices(options.prices);
  say_unused_prices("project", runs, prices);
  const report::scaling::SeriesSet found = report::scaling::find_series(runs, report::scaling::Likenesses(runs));
  std::vector<ProjectedSeries> all;
  std::size_t most = found.lone.empty() ? 0 : 1;
  for (const report::scaling::Series& series : found.series) {
    most = std::max(most, series.points.size());
    if (auto projection = report::scaling::project(series, ranks))
      all.push_back(priced(series, std::move(*projection), prices));
  }
  if (all.empty())
    throw Error(fmt::format("project: needs a training case at {} world sizes that count; the most here is {}: "
                            "assay run NAME --set NAME.scaling=weak --ranks 1,2,4",
                            report::scaling::min_projected_worlds, most),
                ExitCode::no_data);
  if (options.json) {
    Json json = {{"schema", 1}, {"series", Json::array()}};
    for (const ProjectedSeries& one : all) json["series"].push_back(json_of(one));
    fmt::print("{}", dump_document(json, 2));
  } else {
    for (const ProjectedSeries& one : all) print_projected(one);
  }
  return ExitCode::ok;
}

}  // namespace

Command project_command(CLI::App& root) {
  auto options = std::make_shared<ProjectOptions>();
  CLI::App* app = root.add_subcommand("project", "Times, efficiency and cost at world sizes that were not measured");
  app->add_option("dirs", options->dirs, "Run directories with a training case at three world sizes or more")
      ->required()
      ->type_name("RUN");
  app->add_option("--ranks", options->ranks, "World sizes to project to")->required()->type_name("8,64,512");
  app->add_option("--prices", options->prices.file, "Prices of machines: JSON or a SkyPilot catalogue (CSV)")
      ->type_name("FILE");
  app->add_option("--price", options->prices.price, "Price of each whole machine in USD per hour");
  app->add_flag("--json", options->json, "As JSON");
  app->footer("Exit codes: 3 too few world sizes were measured.");
  return {app, [options] { return run_project(*options); }};
}

}  // namespace assay::cli
