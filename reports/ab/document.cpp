#include "reports/ab/document.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "reports/model/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

namespace assay::report {

namespace {

std::string_view sentence_of(Direction verdict) {
  switch (verdict) {
    case Direction::slower: return "B is slower";
    case Direction::faster: return "B is faster";
    case Direction::same: return "B is as fast as A";
    case Direction::unknown: break;
  }
  return "undecided";
}

// Null if unknown.
Json number(double value) { return std::isfinite(value) && value > 0 ? Json(value) : Json(); }

Json outcome_json(const ab::Outcome& outcome) {
  return {{"verdict", name_of(outcome.verdict, "undecided")},
          {"ratio", outcome.pairs > 0 ? number(outcome.ratio) : Json()},
          {"low", number(outcome.low)},
          {"high", number(outcome.high)},
          {"pairs", outcome.pairs}};
}

std::string change(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "?";
}

Tone ab_tone(Direction verdict) {
  if (verdict == Direction::slower) return Tone::bad;
  return verdict == Direction::unknown ? Tone::warn : Tone::good;
}

std::string pairs_of(const ab::Result& result) { return plural(result.all.pairs, "pair"); }

}  // namespace

Document ab_document(const ab::Result& result, const ab::Options& options) {
  Table table{"cases",
              "",
              {{"case"},
               right("a", "A"),
               right("b", "B"),
               right("speed"),
               right("interval", fmt::format("{:g} %", 100 * (1 - options.error))),
               right("pairs"),
               {"verdict"}},
              {}};
  for (const ab::Case& one : result.cases) {
    const ab::Outcome& outcome = one.outcome;
    table.rows.push_back({text_cell(one_line(one.name)), text_cell(format_quantity(one.a, one.unit)),
                          text_cell(format_quantity(one.b, one.unit)), text_cell(change(outcome.ratio)),
                          text_cell(fmt::format("{} .. {}", change(outcome.low), change(outcome.high))),
                          text_cell(std::to_string(outcome.pairs)),
                          text_cell(std::string(name_of(outcome.verdict, "undecided")), ab_tone(outcome.verdict))});
  }
  Section section{"ab", "", {std::move(table)}};
  if (!result.one_sided.empty())
    section.blocks.emplace_back(
        Text{fmt::format("Not judged, as only one side has them: {}", fmt::join(result.one_sided, ", "))});
  Document document{"ab", "", "", ab_tone(result.all.verdict), {std::move(section)}};
  document.verdict =
      fmt::format("{} · {} in {} · tolerance {} · seed {}", sentence_of(result.all.verdict), pairs_of(result),
                  format_seconds(result.seconds), format_percent(options.tolerance), options.seed);
  return document;
}

Json ab_json(const ab::Result& result, const AbQuestion& question) {
  const ab::Options& options = question.options;
  Json json{{"schema", 1}};
  json.update(outcome_json(result.all));
  json.update({{"commands", {{"a", question.a}, {"b", question.b}}},
               {"metric", or_null(question.metric)},
               {"tolerance", options.tolerance},
               {"error", options.error},
               {"budget", options.budget},
               {"seed", options.seed},
               {"seconds", result.seconds},
               {"cases", Json::array()},
               {"one_sided", result.one_sided}});
  for (const ab::Case& one : result.cases) {
    Json item{{"name", one.name}, {"a", number(one.a)}, {"b", number(one.b)}, {"unit", one.unit}};
    item.update(outcome_json(one.outcome));
    json["cases"].push_back(std::move(item));
  }
  return json;
}

std::string why_undecided(const ab::Result& result, const ab::Options& options) {
  const std::string budget = format_seconds(options.budget);
  if (result.ended == ab::Ended::decided) return "";
  if (result.ended == ab::Ended::interrupted) return fmt::format("interrupted after {}", pairs_of(result));
  if (result.all.pairs == 0)
    return fmt::format("one pair takes longer than the budget of {} leaves after the warm-up", budget);
  return fmt::format("undecided: the budget of {} was enough for {}", budget, pairs_of(result));
}

}  // namespace assay::report
