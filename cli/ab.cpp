// assay ab: is one command faster than another? Runs them in turn until the answer stands.
#include "cli/command.h"
#include "cli/formats.h"
#include "cli/options.h"
#include "harness/ab/command_figures.h"
#include "harness/ab/commands.h"
#include "harness/ab/where.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "reports/ab/document.h"
#include "reports/exchange/recognise.h"

#include <fmt/format.h>

#include <memory>
#include <random>

namespace assay::cli {

namespace {

struct AbOptions {
  std::string a, b, metric, better, tolerance = "2%", error = "5%", budget = "10m", seed;
  std::vector<std::string> cases;
  bool where = false;
  Outputs outputs;
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
  if (!options.cases.empty() && !options.metric.empty() && options.metric != "lines")
    throw UsageError(
        fmt::format("ab: --case: what has cases is lines and known tools' JSON, not --metric {}", options.metric));
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

ExitCode ab(const AbOptions& asked) {
  const ab::Options options = read_options(asked);
  ab::CommandFigures figures(asked.metric, asked.cases, from_word<Better>(asked.better), report::read_tool);
  const auto read = [&](const CommandOutput& output, char side) { return figures.read(output, side); };
  Children children("the comparison");
  const auto run_one = [&](const ProcessRun& run) { return children.run(run); };
  const ab::Result result = ab::run_commands({"ab", asked.a, asked.b, read}, options, run_one);
  for (const std::string& remark : figures.remarks()) say("assay: ab: {}\n", remark);
  if (const std::string why = report::why_undecided(result, options); !why.empty()) say("assay: ab: {}\n", why);
  asked.outputs.write_json([&] {
    return dump_document(report::ab_json(result, {asked.a, asked.b, figures.metric(), options}));
  });
  if (result.all.pairs > 0) asked.outputs.print(report::ab_document(result, options));
  if (asked.where)
    say("assay: ab: own time of functions, A -> B: {}\n", ab::text_of(ab::where_time_goes(asked.a, asked.b, run_one)));
  switch (result.all.verdict) {
    case Direction::slower: return ExitCode::failed;
    case Direction::unknown: return ExitCode::no_data;
    default: return ExitCode::ok;
  }
}

}  // namespace

Command ab_command(CLI::App& root) {
  auto options = std::make_shared<AbOptions>();
  CLI::App* app = root.add_subcommand("ab", "Run two commands in turn until one is faster, or they are the same");
  app->add_option("--a", options->a, "The command to compare with")->required()->type_name("COMMAND");
  app->add_option("--b", options->b, "The command to judge")->required()->type_name("COMMAND");
  app->add_option("--metric", options->metric,
                  "time (wall time); lines (\"name value unit better\" on each line of output); or NAME, see below.\n"
                  "Without it: lines if the output is nothing else, each case of a known tool's JSON, otherwise time");
  add_better_option(*app, options->better);
  app->add_option("--case", options->cases, "Judge only this case (NAME or NAME:METRIC); may be given several times")
      ->allow_extra_args(false);
  app->add_option("--tolerance", options->tolerance, "Changes up to this size are the same")->capture_default_str();
  app->add_option("--error", options->error, "Probability that any verdict is wrong")->capture_default_str();
  app->add_option("--budget", options->budget, "Time for everything (90s, 10m, 1h)")->capture_default_str();
  app->add_option("--seed", options->seed, "Seed of the order within pairs; a new one by default");
  app->add_flag("--where", options->where,
                "Then run each once more under perf: the five functions whose own time differs most");
  options->outputs.add_to(*app);
  app->footer(std::string(ab_footer) + "\n\n" + metric_grammar);
  return {app, [options] { return ab(*options); }};
}

}  // namespace assay::cli
