// assay ab: is one command faster than another? Runs them in turn until the answer stands.
#include "harness/ab/ab.h"
#include "cli/command.h"
#include "cli/command_sides.h"
#include "cli/files.h"
#include "cli/formats.h"
#include "harness/ab/command_figures.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "reports/data/cells.h"
#include "reports/data/words.h"
#include "reports/render/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

namespace assay::cli {

namespace {

struct AbOptions {
  std::string a, b, metric, better, tolerance = "2%", error = "5%", budget = "10m", seed;
  std::vector<std::string> cases;
  bool json = false;
};

constexpr const char* ab_footer =
    "Runs A and B in pairs, in random order within each, until every case is faster, slower or the\n"
    "same; the probability that any verdict is wrong is at most --error, whatever the load and however\n"
    "early it ends. Ratios are B's speed over A's: above 1, B is faster. Changes up to the tolerance are\n"
    "the same. Exit codes: 0 same or faster; 1 slower; 3 undecided within the budget; 2 usage; 4 a\n"
    "command failed.";

ab::Options read_options(const AbOptions& options) {
  for (const auto& [flag, command] : {std::pair("--a", &options.a), std::pair("--b", &options.b)})
    if (command->find_first_not_of(" \t\n") == command->npos) throw UsageError(fmt::format("ab: {}: no command", flag));
  ab::Options read;
  read.tolerance = parse_part("ab: --tolerance", options.tolerance);
  if (read.tolerance == 0)
    throw UsageError("ab: --tolerance: with 0 no two commands are the same; give 0.1%, for example");
  read.error = parse_part("ab: --error", options.error);
  if (read.error == 0) throw UsageError("ab: --error: with 0 no number of pairs decides; give 0.1%, for example");
  read.budget = parse_flag("ab: --budget", options.budget, parse_seconds);
  if (read.budget == 0) throw UsageError("ab: --budget: 0 leaves no time to measure");
  if (options.seed.empty()) {
    read.seed = std::random_device()();
  } else {
    const std::int64_t seed = parse_flag("ab: --seed", options.seed, parse_integer);
    if (seed < 0) throw UsageError(fmt::format("ab: --seed: {} is negative", seed));
    read.seed = static_cast<std::uint64_t>(seed);
  }
  return read;
}

// Null if unknown.
Json number(double value) { return std::isfinite(value) && value > 0 ? Json(value) : Json(); }

Json to_json(const ab::Outcome& outcome) {
  return {{"verdict", name_of(outcome.verdict, "undecided")},
          {"ratio", outcome.pairs > 0 ? number(outcome.ratio) : Json()},
          {"low", number(outcome.low)},
          {"high", number(outcome.high)},
          {"pairs", outcome.pairs}};
}

Json to_json(const ab::Result& result, const AbOptions& asked, const ab::Options& options, const std::string& metric) {
  Json json{{"schema", 1}};
  json.update(to_json(result.all));
  json.update({{"commands", {{"a", asked.a}, {"b", asked.b}}},
               {"metric", metric.empty() ? Json() : Json(metric)},
               {"tolerance", options.tolerance},
               {"error", options.error},
               {"budget", options.budget},
               {"seed", options.seed},
               {"seconds", result.seconds},
               {"cases", Json::array()},
               {"one_sided", result.one_sided}});
  for (const ab::Case& one : result.cases) {
    Json item{{"name", one.name}, {"a", number(one.a)}, {"b", number(one.b)}, {"unit", one.unit}};
    item.update(to_json(one.outcome));
    json["cases"].push_back(std::move(item));
  }
  return json;
}

std::string change(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "?";
}

report::Tone ab_tone(Direction verdict) {
  if (verdict == Direction::slower) return report::Tone::bad;
  return verdict == Direction::unknown ? report::Tone::warn : report::Tone::good;
}

std::string_view sentence(Direction verdict) {
  switch (verdict) {
    case Direction::faster: return "B is faster";
    case Direction::slower: return "B is slower";
    case Direction::same: return "B is as fast as A";
    case Direction::unknown: break;
  }
  return "undecided";
}

std::string pairs_of(const ab::Result& result) { return plural(static_cast<std::int64_t>(result.all.pairs), "pair"); }

report::Document document_of(const ab::Result& result, const ab::Options& options) {
  using namespace report;
  Table table{"cases",
              "",
              {{"case", "case"},
               {"a", "A", Align::right},
               {"b", "B", Align::right},
               {"speed", "speed", Align::right},
               {"interval", fmt::format("{:g} %", 100 * (1 - options.error)), Align::right},
               {"pairs", "pairs", Align::right},
               {"verdict", "verdict"}},
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
      fmt::format("{} · {} in {} · tolerance {} · seed {}", sentence(result.all.verdict), pairs_of(result),
                  format_seconds(result.seconds), format_percent(options.tolerance), options.seed);
  return document;
}

// Why cases are undecided, on stderr.
void explain_end(const ab::Result& result, const ab::Options& options) {
  const std::string budget = format_seconds(options.budget);
  if (result.ended == ab::Ended::interrupted)
    say("assay: ab: interrupted after {}\n", pairs_of(result));
  else if (result.all.pairs == 0)
    say("assay: ab: one pair takes longer than the budget of {} leaves after the warm-up\n", budget);
  else
    say("assay: ab: undecided: the budget of {} was enough for {}\n", budget, pairs_of(result));
}

ExitCode ab(const AbOptions& asked) {
  const ab::Options options = read_options(asked);
  ab::CommandFigures figures(asked.metric, asked.cases, from_word<Better>(asked.better));
  const auto read = [&](const CommandOutput& output, char side) { return figures.read(output, side); };
  const ab::Result result = compare_commands("ab", asked.a, asked.b, read, options);
  for (const std::string& remark : figures.remarks()) say("assay: ab: {}\n", remark);
  if (result.ended != ab::Ended::decided) explain_end(result, options);
  if (asked.json)
    fmt::print("{}", dump_document(to_json(result, asked, options, figures.metric())));
  else if (result.all.pairs > 0)
    print(document_of(result, options));
  switch (result.all.verdict) {
    case Direction::slower: return ExitCode::failed;
    case Direction::unknown: return ExitCode::no_data;
    default: return ExitCode::ok;
  }
}

}  // namespace

Command ab_command(CLI::App& root) {
  auto options = std::make_shared<AbOptions>();
  CLI::App* app = root.add_subcommand("ab", "Is one command faster than another? Runs both until the answer stands");
  app->add_option("--a", options->a, "The command to compare with")->required()->type_name("COMMAND");
  app->add_option("--b", options->b, "The command to judge")->required()->type_name("COMMAND");
  app->add_option("--metric", options->metric,
                  "time (wall time); lines (\"name value unit better\" on each line of output); or NAME, see below.\n"
                  "Without it: lines if the output is nothing else, otherwise time");
  add_better_option(*app, options->better);
  app->add_option("--case", options->cases, "Of lines, judge only this case; may be given several times")
      ->allow_extra_args(false);
  app->add_option("--tolerance", options->tolerance, "Changes up to this size are the same")->capture_default_str();
  app->add_option("--error", options->error, "Probability that any verdict is wrong")->capture_default_str();
  app->add_option("--budget", options->budget, "Time for everything (90s, 10m, 1h)")->capture_default_str();
  app->add_option("--seed", options->seed, "Of the order within pairs; by default a new one each time");
  app->add_flag("--json", options->json, "As JSON");
  app->footer(std::string(ab_footer) + "\n\n" + metric_grammar);
  return {app, [options] { return ab(*options); }};
}

}  // namespace assay::cli
