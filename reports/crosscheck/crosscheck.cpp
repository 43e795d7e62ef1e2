#include "reports/crosscheck/crosscheck.h"

#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/statistics/statistics.h"
#include "reports/model/cells.h"
#include "reports/model/fitness.h"

#include <fmt/format.h>

#include <utility>

namespace assay::report {

Json crosscheck_json(const crosscheck::Result& result) {
  Json rows = Json::array();
  for (const crosscheck::Row& row : result.rows)
    rows.push_back({{"tool", row.tool},
                    {"test", row.test},
                    {"bytes", row.bytes},
                    {"unit", "B/s"},
                    {"ours", median(row.ours)},
                    {"theirs", median(row.theirs)},
                    {"ratio", row.ratio},
                    {"low", row.interval.low},
                    {"high", row.interval.high},
                    {"ratios", row.ratios},
                    {"state", name_of(row.fitness, crosscheck::row_words)}});
  Json tools = Json::array();
  for (const crosscheck::Found& tool : result.tools)
    tools.push_back({{"name", tool.name}, {"path", or_null(tool.path)}});
  return {{"schema", 1},
          {"tolerance", result.tolerance},
          {"tools", std::move(tools)},
          {"remarks", result.remarks},
          {"rows", std::move(rows)}};
}

Document crosscheck_document(const crosscheck::Result& result) {
  Table table{"ratios",
              "",
              {{"test"},
               right("bytes", "size"),
               right("ours"),
               right("theirs"),
               right("ratio"),
               right("interval", "95 %"),
               {"state", "verdict"}},
              {}};
  for (const crosscheck::Row& row : result.rows)
    table.rows.push_back({text_cell(row.tool == row.test + "_perf" ? row.tool : row.tool + " " + row.test),
                          text_cell(format_bytes(static_cast<double>(row.bytes))),
                          text_cell(format_quantity(median(row.ours), "B/s")),
                          text_cell(format_quantity(median(row.theirs), "B/s")), text_cell(format_number(row.ratio, 3)),
                          text_cell(fmt::format("{:.3f} – {:.3f}", row.interval.low, row.interval.high)),
                          text_cell(std::string(name_of(row.fitness, crosscheck::row_words)), tone_of(row.fitness))});
  Section section{"crosscheck", "", {}};
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  if (!result.remarks.empty()) section.blocks.emplace_back(List{"remarks", result.remarks});
  Document document{"crosscheck", "", "", Tone::plain, {std::move(section)}};
  document.verdict =
      fmt::format("within {}: {} · beyond: {} · unclear: {}{}", format_percent(result.tolerance),
                  result.count(Fitness::pass), result.count(Fitness::fail), result.count(Fitness::unsure),
                  result.missing > 0 ? fmt::format(" · not compared: {}", result.missing) : "");
  if (result.fitness() != Fitness::pass) document.tone = verdict_tone(result.fitness());
  return document;
}

}  // namespace assay::report
