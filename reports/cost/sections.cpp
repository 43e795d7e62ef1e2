// The report's sections on costs: side by side for people; in files every figure with its price and warnings.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "reports/cost/lines.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace assay::report {

namespace {

constexpr std::size_t max_rows = 16;     // of the side-by-side table; files have all
constexpr std::size_t max_machines = 5;  // listed as without a price
constexpr double joules_per_kwh = 3.6e6;

const HourlyPrice* offer_of(const CostLine& line, Basis basis) {
  for (const HourlyPrice& price : line.offers)
    if (price.basis == basis) return &price;
  return nullptr;
}

std::vector<Basis> bases_of(const std::vector<CostLine>& lines) {
  std::vector<Basis> found;
  for (const Basis basis : all_bases)
    if (std::ranges::any_of(lines, [&](const CostLine& line) { return offer_of(line, basis); })) found.push_back(basis);
  return found;
}

// With null for a missing interval.
Cell total_cell(const Estimate& total, std::string_view unit) {
  Cell cell = quantity_cell(total, unit);
  cell.data["ci95"] = interval_json(total.interval);
  return cell;
}

Cell usd_cell(const CostLine& line, const HourlyPrice* price) {
  if (!price || !price->usd) return no_cell();
  Cell cell = total_cell(line.usd(*price), "USD");
  if (price->warnings.empty() && line.warnings.empty()) return cell;
  cell.text += "*";
  cell.tone = Tone::warn;
  return cell;
}

// Half the interval as a fraction of the figure.
Cell relative_cell(const CostLine& line) {
  if (!line.ci95 || !(line.seconds > 0)) return no_cell();
  const double half = *half_width({line.seconds, line.ci95}) / line.seconds;
  Cell cell{precision_text(half),
            {{"relative_half_width", half}, {"interval", line.interval}},
            half > max_usable_half ? Tone::warn : Tone::plain};
  cell.sort = half;
  return cell;
}

// "million tokens" is too wide next to three prices.
std::string short_of(const std::string& per) {
  if (per.starts_with("million ")) return "M " + per.substr(8);
  return per == "run to quality" ? "quality run" : per;
}

std::set<std::string> machines_of(const std::vector<CostLine>& lines) {
  std::set<std::string> machines;
  for (const CostLine& line : lines)
    if (!line.offers.empty()) machines.insert(line.machine);
  return machines;
}

// Terms side by side, one row per case and kind of result; the machine is in the title if there is only one.
Table side_by_side(const std::vector<CostLine>& lines, const std::vector<Basis>& bases) {
  const std::set<std::string> machines = machines_of(lines);
  Table table{"cost_summary", "", {{"case"}}};
  if (machines.size() > 1) table.columns.push_back({"machine", "machine"});
  table.columns.push_back({"per", "per"});
  for (const Basis basis : bases) {
    std::string id(name_of(basis));
    std::ranges::replace(id, ' ', '_');
    table.columns.push_back(right(basis == Basis::given ? "price" : id, std::string(name_of(basis))));
  }
  table.columns.push_back(right("ci95", "95 %"));
  table.columns.push_back({"stands_for", "from"});
  std::size_t rows = 0;
  for (const CostLine& line : lines) {
    if (line.offers.empty() || ++rows > max_rows) continue;
    std::vector<Cell> row{case_cell(*line.record, line.anchor)};
    if (machines.size() > 1) row.push_back({line.machine, nullptr});
    row.push_back({short_of(line.per), line.per});
    for (const Basis basis : bases) row.push_back(usd_cell(line, offer_of(line, basis)));
    row.push_back(relative_cell(line));
    const std::string from = line.stands_for.substr(0, line.stands_for.find(','));
    row.push_back({from + (line.interval.empty() ? "" : ", " + line.interval), line.stands_for});
    table.rows.push_back(std::move(row));
  }
  if (machines.size() == 1) table.title = "On " + *machines.begin();
  if (rows > max_rows)
    table.title += fmt::format("{}the first {} of {} rows", table.title.empty() ? "" : ", ", max_rows, rows);
  return table;
}

// Each warning once, with what it is about.
List warning_list(const std::vector<CostLine>& lines) {
  struct About {
    std::vector<std::string> what;
    std::string text;
  };
  std::vector<About> all;
  const auto add = [&](const std::string& text, const std::string& what) {
    auto found = std::ranges::find(all, text, &About::text);
    if (found == all.end()) found = all.insert(all.end(), {{}, text});
    if (std::ranges::find(found->what, what) == found->what.end()) found->what.push_back(what);
  };
  const bool several = machines_of(lines).size() > 1;
  for (const CostLine& line : lines) {
    for (const HourlyPrice& price : line.offers)
      for (const std::string& warning : price.warnings)
        add(warning, (several ? line.machine + " " : "") + std::string(name_of(price.basis)));
    if (!line.offers.empty())
      for (const std::string& warning : line.warnings) add(warning, case_title(*line.record));
  }
  List list{"cost_warnings", {}};
  for (const About& about : all) list.items.push_back(fmt::format("{}: {}", first_few(about.what), about.text));
  return list;
}

std::string interval_text(const CostLine& line, const HourlyPrice& price) {
  const auto interval = line.usd(price).interval;
  if (!interval) return "–";
  const auto end = [half = 0.5 * (interval->high - interval->low)](double usd) {
    return format_quantity(usd, "USD", half);
  };
  return fmt::format("{} to {}, {}", end(interval->low), end(interval->high), line.interval);
}

std::string hourly_text(const HourlyPrice& price) {
  if (!price.usd) return "unknown";
  std::string text = fmt::format("{:.6g} USD/h", *price.usd);
  if (price.range) text += fmt::format(" ({}, {:.6g} to {:.6g})", price.rule, price.range->low, price.range->high);
  return text;
}

// One row per figure: what JSON has about costs.
Table every_cost(const std::vector<CostLine>& lines) {
  Table table{"cost",
              "",
              {{"case"},
               {"machine"},
               {"stands_for", "from"},
               {"per"},
               {"basis"},
               right("usd", "cost"),
               right("interval", "95 % interval"),
               right("price", "price per machine"),
               right("machines"),
               {"region"},
               {"date"},
               {"source"},
               {"warnings"},
               {"record"}}};
  for (const CostLine& line : lines) {
    for (const HourlyPrice& price : line.offers) {
      std::vector<std::string> warnings = price.warnings;
      warnings.insert(warnings.end(), line.warnings.begin(), line.warnings.end());
      const Json hourly = {{"value", or_null(price.usd)},
                           {"unit", "USD/h"},
                           {"range", interval_json(price.range)},
                           {"rule", price.rule}};
      Cell usd = usd_cell(line, &price);
      if (!price.usd) usd.data = {{"value", nullptr}, {"unit", "USD"}, {"ci95", nullptr}};
      table.rows.push_back({case_cell(*line.record, line.anchor),
                            {line.machine, nullptr},
                            {line.stands_for, nullptr},
                            {line.per, nullptr},
                            {std::string(name_of(price.basis)), nullptr},
                            std::move(usd),
                            {price.usd ? interval_text(line, price) : "–", line.interval},
                            {hourly_text(price), hourly},
                            count_cell(line.machines),
                            {price.region.empty() ? "–" : price.region, price.region},
                            {price.date.empty() ? "–" : dated(price.date, price.age), price.date},
                            {price.source, nullptr},
                            {joined(warnings, "; "), warnings, warnings.empty() ? Tone::plain : Tone::warn},
                            {line.place, nullptr}});
    }
  }
  return table;
}

Table energy_table(const std::vector<CostLine>& lines) {
  Table table{"energy",
              "",
              {{"case"},
               {"machine"},
               {"stands_for", "from"},
               {"per"},
               {"sensor"},
               right("energy"),
               right("kwh", "kWh"),
               {"interval", "95 %"}}};
  for (const CostLine& line : lines) {
    for (const Power& power : line.power) {
      const Estimate joules{power.watts * line.seconds, scaled(line.ci95, power.watts)};
      const Estimate kwh{joules.value / joules_per_kwh, scaled(joules.interval, 1 / joules_per_kwh)};
      table.rows.push_back({case_cell(*line.record, line.anchor),
                            {line.machine, nullptr},
                            {line.stands_for, nullptr},
                            {line.per, nullptr},
                            {power.sensor, nullptr},
                            total_cell(joules, "J"),
                            total_cell(kwh, "kWh"),
                            {line.interval.empty() ? "–" : line.interval, line.interval}});
    }
  }
  return table;
}

void say_unpriced(Section& section, const CostLines& costs, const PriceSource& prices) {
  const std::size_t shown = std::min(max_machines, costs.unpriced.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const UnpricedMachine& without = costs.unpriced[i];
    const std::string name = without.machine.name.empty() ? "this machine" : without.machine.name;
    section.blocks.push_back(Text{fmt::format("No price for {}{}: {}. Give one: --price USD_PER_HOUR or --prices FILE.",
                                              name, without.runs > 1 ? fmt::format(" ({} runs)", without.runs) : "",
                                              why_no_price(without.machine, prices)),
                                  Tone::faint});
  }
  if (costs.unpriced.size() > shown)
    section.blocks.push_back(
        Text{fmt::format("No price for {} more either.", plural(costs.unpriced.size() - shown, "kind") + " of machine"),
             Tone::faint});
}

List left_out_list(const CostLines& costs) {
  List list{"cost_left_out", {}};
  for (const LeftOut& left : costs.left_out)
    list.items.push_back(fmt::format("{}: {}, first {}", left.reason, plural(left.count, "record"), left.first));
  if (costs.other_records > 0)
    list.items.push_back(fmt::format("no result that could be priced (items, FLOPs or a run to quality): {}",
                                     plural(costs.other_records, "record")));
  return list;
}

}  // namespace

std::vector<Section> cost_sections(const RunSet& runs, const PriceSource& prices) {
  const CostLines costs = cost_lines(runs, prices);
  if (costs.lines.empty() && !(prices.asked && costs.other_records > 0)) return {};
  if (costs.lines.empty())
    return {{"cost",
             "Cost per result",
             {Text{"No record has a result that could be priced: items, FLOPs or a run to quality.", Tone::faint}}}};
  const std::vector<Basis> bases = bases_of(costs.lines);
  std::vector<Section> sections;
  Section summary{"cost", "Cost per result", {}};
  say_unpriced(summary, costs, prices);
  Table table = side_by_side(costs.lines, bases);
  Table every = every_cost(costs.lines);
  if (!table.rows.empty()) {
    summary.blocks.push_back(
        Text{"Hourly price of whole machines / 3600 x seconds per result, by the wall time of the measured window. Not "
             "counted: setup, compilation, warm-up, checkpoints outside the window, idle hours. Prices count as exact; "
             "one run does not represent an instance type.",
             Tone::faint});
    summary.blocks.push_back(std::move(table));
    if (List warnings = warning_list(costs.lines); !warnings.items.empty()) {
      summary.blocks.push_back(Text{"* see these warnings:", Tone::warn});
      summary.blocks.push_back(std::move(warnings));
    }
  }
  sections.push_back(std::move(summary));

  Section details{"cost-details", "Costs with their prices", {}, false};
  if (!every.rows.empty()) details.blocks.push_back(std::move(every));
  if (Table energy = energy_table(costs.lines); !energy.rows.empty()) {
    details.blocks.push_back(
        Text{"Energy per result from the available sensors over the same window; never that of the whole machine. "
             "Machines without sensors have no figure here."});
    details.blocks.push_back(std::move(energy));
  }
  if (List left = left_out_list(costs); !left.items.empty() && !details.blocks.empty()) {
    details.blocks.push_back(Text{"Left out:"});
    details.blocks.push_back(std::move(left));
  }
  if (!details.blocks.empty()) sections.push_back(std::move(details));
  return sections;
}

}  // namespace assay::report
