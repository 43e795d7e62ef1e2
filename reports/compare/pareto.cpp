// Costs of both sides, and the Pareto front of cost and throughput over labelled sides.
#include "reports/compare/pareto.h"

#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/json/members.h"
#include "harness/runs/machine_kind.h"
#include "harness/runs/why_left_out.h"
#include "reports/compare/words.h"
#include "reports/cost/cost.h"
#include "reports/model/cells.h"
#include "reports/scaling/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::comparison {

namespace {

constexpr std::size_t max_figures = 6;

using KindsOfLabels = std::map<std::string, std::set<std::string>>;

std::string label_of(const RunData& run) { return text_member(run.run, "/labels/side"); }

void add_kinds(const RunSet& set, KindsOfLabels& all) {
  for (const MachineKind& kind : machine_kinds(set.runs()))
    for (const std::size_t run : kind.runs) all[label_of(set.runs()[run])].insert(kind.name);
}

// Names each run by the label `side`, else its kind of machine; with a label on several kinds, both.
std::vector<std::string> sides_of(const RunSet& set, const KindsOfLabels& kinds, const char* otherwise) {
  std::vector<std::string> sides(set.runs().size());
  for (const MachineKind& kind : machine_kinds(set.runs()))
    for (const std::size_t run : kind.runs) {
      const std::string label = label_of(set.runs()[run]);
      const std::string machine = kind.name.empty() ? otherwise : kind.name;
      sides[run] = label.empty() ? machine : kinds.at(label).size() > 1 ? label + " on " + machine : label;
    }
  return sides;
}

// Equal for records that do the same work in the same way, on any machine.
std::string work_of(const Record& record) {
  Json protocol = record.protocol.is_object() ? record.protocol.get() : Json::object();
  for (const char* of_machine : {"hash", "isa", "implementation"}) protocol.erase(of_machine);
  const std::string how = protocol.empty() ? protocol_of(record) : dump_line(protocol);
  return record.identity().on_any_host().text() + "\n" + how;
}

const Metric* throughput_of(const Record& record) {
  const Metric* metric = find_metric(record, "throughput");
  return metric && std::isfinite(*metric->value) && *metric->value > 0 ? metric : nullptr;
}

struct Gathered {
  std::vector<const Entry*> base, head;
};

struct Work {
  const Entry* example = nullptr;
  std::map<std::string, Gathered> sides;
};

// The geometric mean over the entries of both sets, each with its own prices.
std::optional<Costs::Value> cost_of_both(const Gathered& side, const Costs& base_costs, const Costs& head_costs) {
  const auto base = base_costs.of(side.base), head = head_costs.of(side.head);
  if (!base || !head) return base ? base : head;
  if (base->per != head->per || base->basis != head->basis) return base;
  const double nb = static_cast<double>(side.base.size()), nh = static_cast<double>(side.head.size());
  Costs::Value value = *base;
  value.usd = {std::exp((nb * std::log(base->usd.value) + nh * std::log(head->usd.value)) / (nb + nh))};
  return value;
}

Figure figure_of(const Front& front, std::size_t number) {
  const std::string title = case_title(*front.example->record);
  Figure figure{fmt::format("pareto-{}", number),
                "Cost against throughput: " + title,
                "",
                {"throughput", front.unit},
                {fmt::format("cost per {}, {}", front.per, front.basis), "USD"},
                {}};
  Curve best{"on the front", Mark::line_and_points, {}}, dominated{"dominated", Mark::points, {}};
  std::vector<std::string> names;
  for (const Offer& offer : front.offers) {
    (offer.dominated_by.empty() ? best : dominated).points.push_back({offer.throughput, offer.usd, {}, offer.side});
    if (offer.dominated_by.empty()) names.push_back(offer.side);
  }
  std::ranges::reverse(best.points);  // slowest first: the line runs from left to right
  figure.alt = fmt::format(
      "{}: on the front of cost and throughput: {}; {} dominated by a side that is no slower and no dearer.", title,
      fmt::join(names, ", "), dominated.points.size());
  figure.curves.push_back(std::move(best));
  if (!dominated.points.empty()) figure.curves.push_back(std::move(dominated));
  return figure;
}

Section front_section(const std::vector<Front>& found) {
  Table table{"pareto",
              "",
              {{"case"},
               {"side"},
               right("throughput"),
               right("usd", "cost"),
               {"per"},
               right("runs"),
               {"front", "cost against throughput"}}};
  for (const Front& front : found)
    for (const Offer& offer : front.offers) {
      const bool dominated = !offer.dominated_by.empty();
      table.rows.push_back(
          {case_cell(*front.example->record),
           {offer.side, nullptr},
           quantity_cell({offer.throughput}, front.unit),
           quantity_cell({offer.usd}, "USD"),
           {fmt::format("{}, {}", front.per, front.basis), {{"per", front.per}, {"basis", front.basis}}},
           count_cell(offer.runs),
           {dominated ? "dominated by " + offer.dominated_by : "on the front",
            {{"on_front", !dominated}, {"dominated_by", dominated ? Json(offer.dominated_by) : Json(nullptr)}},
            dominated ? Tone::faint : Tone::good}});
    }
  Section section{"pareto", "Cost against throughput", {std::move(table)}};
  section.blocks.push_back(Text{
      "On the front: no other side is at least as fast and at least as cheap. Implementation and instruction set may "
      "differ between sides here; a side with a single run represents only that run.",
      Tone::faint});
  for (std::size_t i = 0; i < std::min(found.size(), max_figures); ++i)
    section.blocks.push_back(figure_of(found[i], i + 1));
  return section;
}

}  // namespace

void name_machine(Table& table, const std::string& machine) {
  if (machine.empty()) return;
  if (table.columns.back().id != "machine") table.columns.push_back({"machine", "machine"});
  table.rows.back().push_back({machine, nullptr});
}

Costs::Costs(const RunSet& set, const PriceSource& prices) {
  for (const RunData& run : set.runs()) prices_.push_back(prices_of(run, prices));
}

std::optional<Costs::Value> Costs::of(const std::vector<const Entry*>& entries) const {
  std::optional<Value> value;
  double logs = 0;
  int n = 0;
  std::vector<Estimate> costs;
  for (const Entry* entry : entries) {
    for (const Cost& cost : costs_of(*entry, prices_[entry->run_index])) {
      const std::string basis(name_of(cost.price.basis));
      if (!(cost.usd > 0) || !std::isfinite(cost.usd)) continue;
      if (!value) value = Value{{}, cost.per, basis};
      if (cost.per != value->per || basis != value->basis) continue;
      logs += std::log(cost.usd);
      if (const auto positive = scaling::positive(cost.usd, cost.ci95)) costs.push_back(*positive);
      ++n;
      break;
    }
  }
  if (value) value->usd.value = std::exp(logs / n);
  if (!costs.empty()) value->usd.interval = scaling::pooled(costs).interval;
  return value;
}

void find_front(std::vector<Offer>& offers) {
  for (Offer& offer : offers) {
    const Offer* best = nullptr;
    for (const Offer& other : offers) {
      const bool no_worse = other.throughput >= offer.throughput && other.usd <= offer.usd;
      const bool better = other.throughput > offer.throughput || other.usd < offer.usd;
      if (no_worse && better && (!best || other.usd < best->usd)) best = &other;
    }
    offer.dominated_by = best ? best->side : std::string();
  }
}

std::vector<Front> fronts(const RunSet& base, const RunSet& head, const Costs& base_costs, const Costs& head_costs) {
  std::vector<Work> works;
  std::map<std::string, std::size_t> places;
  KindsOfLabels kinds;
  add_kinds(base, kinds);
  add_kinds(head, kinds);
  const auto gather = [&](const RunSet& set, const char* name, std::vector<const Entry*> Gathered::*entries) {
    const std::vector<std::string> sides = sides_of(set, kinds, name);
    for (const Entry& entry : set.entries()) {
      const Metric* metric = throughput_of(*entry.record);
      if (!metric || why_left_out(*entry.record)) continue;
      const auto [place, fresh] = places.try_emplace(work_of(*entry.record) + "\n" + metric->unit, works.size());
      if (fresh) works.push_back({&entry, {}});
      (works[place->second].sides[sides[entry.run_index]].*entries).push_back(&entry);
    }
  };
  gather(base, "base", &Gathered::base);
  gather(head, "head", &Gathered::head);

  std::vector<Front> found;
  for (const Work& work : works) {
    if (work.sides.size() < 2) continue;
    Front front{work.example, throughput_of(*work.example->record)->unit, "", "", {}};
    for (const auto& [name, side] : work.sides) {
      const auto cost = cost_of_both(side, base_costs, head_costs);
      if (!cost || (!front.per.empty() && (cost->per != front.per || cost->basis != front.basis))) continue;
      front.per = cost->per;
      front.basis = cost->basis;
      double logs = 0;
      for (const auto* entries : {&side.base, &side.head})
        for (const Entry* entry : *entries) logs += std::log(*throughput_of(*entry->record)->value);
      const std::size_t n = side.base.size() + side.head.size();
      front.offers.push_back({name, std::exp(logs / static_cast<double>(n)), cost->usd.value, n, ""});
    }
    if (front.offers.size() < 2) continue;
    std::ranges::stable_sort(front.offers, std::ranges::greater(), &Offer::throughput);
    find_front(front.offers);
    found.push_back(std::move(front));
  }
  return found;
}

std::vector<Section> cost_comparison(const Comparison& comparison, const PriceSource& prices) {
  const Costs base_costs(comparison.base, prices), head_costs(comparison.head, prices);
  Table table{"cost", "", {{"case"}, {"per"}, right("base"), right("head"), right("ratio", "cost"), right("speed")}};
  const Pair* last = nullptr;
  for (const Compared& one : comparison.compared) {
    if (!one.pair->headline) continue;
    if (last && last->base == one.pair->base && last->machine == one.pair->machine) continue;
    last = one.pair;
    const auto base = base_costs.of(one.pair->base_entries), head = head_costs.of(one.pair->head_entries);
    if (!base || !head || base->per != head->per || base->basis != head->basis) continue;
    const Estimate ratio = scaling::ratio(head->usd, base->usd);
    table.rows.push_back(
        {case_cell(*one.pair->base->record),
         {fmt::format("{}, {}", base->per, base->basis), {{"per", base->per}, {"basis", base->basis}}},
         quantity_cell({base->usd.value}, "USD"),
         quantity_cell({head->usd.value}, "USD"),
         {change_text(ratio.value, ratio.interval), ratio.value, Tone::plain, {}, ratio.value},
         {change_text(one.change.ratio, one.change.ci95), one.change.ratio, Tone::plain, {}, one.change.ratio}});
    name_machine(table, one.pair->machine);
  }
  std::vector<Section> sections;
  if (!table.rows.empty()) {
    Section section{"cost", "Cost and speed", {std::move(table)}};
    section.blocks.push_back(Text{
        "Cost counts wall time, including stalls; the speed of a micro-benchmark is taken from medians.", Tone::faint});
    sections.push_back(std::move(section));
  }
  const std::vector<Front> found = fronts(comparison.base, comparison.head, base_costs, head_costs);
  if (!found.empty()) sections.push_back(front_section(found));
  std::vector<HourlyPrice> used;
  for (const Costs* side : {&base_costs, &head_costs})
    for (const MachinePrices& machine : side->prices())
      if (!machine.offers.empty()) used.push_back(machine.offers.front());
  if (auto oldest = oldest_price(used); oldest && !sections.empty()) sections[0].blocks.push_back(*std::move(oldest));
  return sections;
}

}  // namespace assay::report::comparison
