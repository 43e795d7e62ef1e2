#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/runs/figures.h"
#include "reports/cost/cost.h"
#include "reports/model/cells.h"
#include "reports/model/words.h"
#include "reports/ranking/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace assay::report::ranking {

namespace {

constexpr std::size_t max_in_words = 3;      // micro-benchmarks in words, if no training is common
constexpr std::size_t max_in_terminal = 10;  // rows of the table of all cases

std::string id_of(Basis basis) {
  std::string id(basis == Basis::given ? "given" : name_of(basis));
  std::ranges::replace(id, ' ', '_');
  return id;
}

Cell relative_cell(const Row& row) {
  Cell cell{fmt::format("{:.2f}", row.relative.value), {{"value", row.relative.value}, {"unit", "1"}}};
  if (row.relative.interval) cell.data["ci95"] = interval_json(row.relative.interval);
  cell.sort = row.relative.value;
  if (row.may_be_fastest) cell.tone = Tone::good;
  return cell;
}

std::vector<Basis> bases_of(const RankedCase& ranked) {
  std::vector<Basis> bases;
  for (const Basis basis : all_bases)
    if (std::ranges::any_of(ranked.rows, [&](const Row& row) { return usd_of(row, basis); })) bases.push_back(basis);
  return bases;
}

// One row per kind, on one scale.
Bars bars_of(const Ranking& ranking, const RankedCase& ranked, const std::string& id) {
  Bars bars{
      id, case_title(*ranked.record), "Bar: the figure; whiskers: its 95 % interval. All bars have one scale.", {}, {}};
  std::vector<Estimate> figures;
  for (const Row& row : ranked.rows) figures.push_back(row.figure);
  const double end = 1.05 * std::ranges::max(shown_values(figures, true));
  for (const Row& row : ranked.rows) {
    BarRow bar{ranking.kinds[row.kind].name, quantity_text(row.figure, ranked.metric->unit), {row.figure.value / end}};
    if (row.figure.interval) {
      bar.range = scaled(row.figure.interval, 1 / end);
      bar.text += " " + precision_text(*half_width(row.figure) / row.figure.value);
    }
    bar.link = row.entries.back()->anchor();
    bars.rows.push_back(std::move(bar));
  }
  return bars;
}

Table table_of(const Ranking& ranking, const RankedCase& ranked, const std::string& id) {
  Table table{id,
              case_title(*ranked.record),
              {{"machine", "machine"},
               {"speed", "speed", Align::right},
               {"figure", "figure", Align::right},
               {"ci95", "95 %", Align::right}}};
  const std::vector<Basis> bases = bases_of(ranked);
  const bool mfu = std::ranges::any_of(ranked.rows, [](const Row& row) { return row.mfu.has_value(); });
  const bool joules = std::ranges::any_of(ranked.rows, [](const Row& row) { return row.joules.has_value(); });
  if (mfu) table.columns.push_back({"mfu", "MFU", Align::right});
  for (const Basis basis : bases)
    table.columns.push_back(
        {"usd_" + id_of(basis), fmt::format("USD per {}, {}", ranked.per, name_of(basis)), Align::right});
  if (joules) table.columns.push_back({"joules", "J per " + ranked.per, Align::right});
  table.columns.push_back({"machines", "from"});
  for (const Row& row : ranked.rows) {
    const Kind& kind = ranking.kinds[row.kind];
    std::vector<Cell> cells{{kind.name, kind.name, Tone::plain, row.entries.back()->anchor()},
                            relative_cell(row),
                            quantity_cell(row.figure, ranked.metric->unit)};
    const auto half = half_width(row.figure);
    cells.push_back(half ? Cell{precision_text(*half / row.figure.value), interval_json(row.figure.interval)}
                         : no_cell());
    if (mfu) cells.push_back(row.mfu ? share_cell(*row.mfu) : no_cell());
    for (const Basis basis : bases) {
      const Usd* usd = usd_of(row, basis);
      cells.push_back(usd ? quantity_cell(usd->value, "USD") : no_cell());
    }
    if (joules) cells.push_back(row.joules ? quantity_cell({*row.joules}, "J") : no_cell());
    const std::size_t machines = row.side.logs.size(), runs = row.entries.size();
    std::string from = plural(machines, "machine");
    if (runs > machines) from += ", " + plural(runs, "run");
    cells.push_back({std::move(from), {{"machines", machines}, {"runs", runs}}});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// What `items` tokens or images cost on each kind: the set-up before the first step, then training. Absent for cases of
// which a result is not a million items.
std::optional<Table> bill_of(const Ranking& ranking, const RankedCase& ranked, double items, const std::string& id) {
  if (!ranked.per.starts_with("million ")) return std::nullopt;
  const std::vector<Basis> bases = bases_of(ranked);
  Table table{id,
              fmt::format("The bill for {:g} {}: set-up and training", items / 1e6, ranked.per),
              {{"machine", "machine"}, {"seconds", "time", Align::right}}};
  for (const Basis basis : bases)
    table.columns.push_back({"usd_" + id_of(basis), std::string(name_of(basis)), Align::right});
  for (const Row& row : ranked.rows) {
    const double setup = span_of(*row.entries.back()->record, "setup").value_or(0);
    const double seconds = setup + items / row.figure.value;
    std::vector<Cell> cells{text_cell(ranking.kinds[row.kind].name),
                            {format_seconds(seconds), {{"value", seconds}, {"unit", "s"}}, Tone::plain, {}, seconds}};
    for (const Basis basis : bases) {
      const Usd* usd = usd_of(row, basis);
      const double machines = std::max(1, row.entries.back()->record->world_nodes);
      cells.push_back(usd ? quantity_cell({*usd->price.usd * machines * seconds / seconds_per_hour}, "USD")
                          : no_cell());
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// A row per case, a column per kind: its speed as a fraction of the fastest.
Table overview(const Ranking& ranking, std::span<const RankedCase> cases, std::size_t max, const std::string& id) {
  Table table{id,
              "Speed as a fraction of the fastest (marked: the fastest, and what is too close to it to tell)",
              {{"case", "case"}}};
  if (cases.size() > max) table.title += fmt::format(", the first {} of {} cases", max, cases.size());
  for (const Kind& kind : ranking.kinds) table.columns.push_back({"speed_" + kind.name, kind.name, Align::right});
  table.columns.push_back({"fastest", "figure of the fastest", Align::right});
  for (const RankedCase& ranked : cases.first(std::min(max, cases.size()))) {
    std::vector<Cell> cells{case_cell(*ranked.record)};
    for (std::size_t kind = 0; kind < ranking.kinds.size(); ++kind) {
      const auto row = std::ranges::find(ranked.rows, kind, &Row::kind);
      cells.push_back(row == ranked.rows.end() ? no_cell() : relative_cell(*row));
    }
    cells.push_back(quantity_cell(ranked.rows.front().figure, ranked.metric->unit));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// What stands for the letters, and how many machines and runs each kind has.
List legend(const Ranking& ranking) {
  List list{"kinds", {}};
  for (const Kind& kind : ranking.kinds) {
    std::string description = kind.description.empty() ? "unknown machine" : kind.description;
    if (const std::string name = ", " + kind.name; description.ends_with(name))
      description.resize(description.size() - name.size());
    list.items.push_back(fmt::format("{}: {}; {}, {}", kind.name, description, plural(kind.machines, "machine"),
                                     plural(kind.runs.size(), "run")));
  }
  return list;
}

Json usd_json(const Row& row) {
  Json usd = Json::object();
  for (const Basis basis : all_bases) {
    const Usd* found = usd_of(row, basis);
    usd[id_of(basis)] = found ? Json(found->value.value) : Json(nullptr);
  }
  return usd;
}

Json estimate_json(const Estimate& estimate) {
  return {{"value", estimate.value},
          {"low", estimate.interval ? Json(estimate.interval->low) : Json(nullptr)},
          {"high", estimate.interval ? Json(estimate.interval->high) : Json(nullptr)}};
}

std::vector<HourlyPrice> prices_in(const Ranking& ranking) {
  std::vector<HourlyPrice> prices;
  for (const RankedCase& ranked : ranking.cases)
    for (const Row& row : ranked.rows)
      for (const Usd& usd : row.usd) prices.push_back(usd.price);
  return prices;
}

// How many of the cases have sentences, bars and a table of their own: training, else the first few.
std::size_t in_words(const Ranking& ranking) {
  const auto training =
      std::ranges::count_if(ranking.cases, [](const RankedCase& one) { return is_training(*one.record); });
  return training > 0 ? static_cast<std::size_t>(training) : std::min(max_in_words, ranking.cases.size());
}

}  // namespace

std::vector<Section> sections_of(const Ranking& ranking, std::optional<double> items) {
  if (ranking.cases.empty() && ranking.not_ranked.empty()) return {};
  Section section{"ranking", "Which machine?", {}, true, true};
  Section rest{"ranking_cases", "Every case on every machine", {}, false};
  const std::span all(ranking.cases);
  for (std::size_t i = 0; i < in_words(ranking); ++i) {
    Section& into = i == 0 ? section : rest;
    const auto say = [&] {
      for (const std::string& sentence : sentences_of(ranking, all[i])) into.blocks.push_back(Text{sentence});
    };
    if (i == 0) say();
    into.blocks.push_back(bars_of(ranking, all[i], fmt::format("ranking_bars_{}", i + 1)));
    into.blocks.push_back(table_of(ranking, all[i], fmt::format("ranking_{}", i + 1)));
    if (i > 0) say();  // below the title that names the case
    if (i == 0) into.blocks.push_back(legend(ranking));
    if (items)
      if (auto bill = bill_of(ranking, all[i], *items, fmt::format("ranking_bill_{}", i + 1)))
        into.blocks.push_back(std::move(*bill));
  }
  if (all.empty()) section.blocks.push_back(legend(ranking));
  if (all.size() > 1) section.blocks.push_back(overview(ranking, all, max_in_terminal, "ranking_overview"));
  if (all.size() > max_in_terminal) rest.blocks.push_back(overview(ranking, all, all.size(), "ranking_all"));
  if (auto oldest = oldest_price(prices_in(ranking))) section.blocks.push_back(*std::move(oldest));
  if (!ranking.not_ranked.empty())
    section.blocks.push_back(Text{"Not ranked: " + first_few(ranking.not_ranked, 5, "; ") + ".", Tone::warn});
  std::vector<Section> sections{std::move(section)};
  if (!rest.blocks.empty()) sections.push_back(std::move(rest));
  return sections;
}

Json json_of(const Ranking& ranking) {
  Json machines = Json::array();
  for (std::size_t kind = 0; kind < ranking.kinds.size(); ++kind) {
    Json cases = Json::array();
    for (const RankedCase& ranked : ranking.cases) {
      const auto row = std::ranges::find(ranked.rows, kind, &Row::kind);
      if (row == ranked.rows.end()) continue;
      cases.push_back({{"case", ranked.record->key},
                       {"unit", ranked.metric->unit},
                       {"speed", estimate_json(row->figure)},
                       {"relative", estimate_json(row->relative)},
                       {"may_be_fastest", row->may_be_fastest},
                       {"mfu", row->mfu ? Json(*row->mfu) : Json(nullptr)},
                       {"per", ranked.per},
                       {"usd_per_million", usd_json(*row)},
                       {"joules", row->joules ? Json(*row->joules) : Json(nullptr)}});
    }
    const Kind& one = ranking.kinds[kind];
    machines.push_back({{"machine", one.name},
                        {"description", one.description},
                        {"machines", one.machines},
                        {"runs", one.runs.size()},
                        {"cases", std::move(cases)}});
  }
  Json sentences = Json::array();
  for (const RankedCase& ranked : std::span(ranking.cases).first(in_words(ranking)))
    for (const std::string& text : sentences_of(ranking, ranked))
      sentences.push_back(fmt::format("{}: {}", case_title(*ranked.record), text));
  return {{"machines", std::move(machines)}, {"sentences", std::move(sentences)}, {"not_ranked", ranking.not_ranked}};
}

}  // namespace assay::report::ranking
