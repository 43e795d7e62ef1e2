// assay diagnose: what holds the cases of finished runs back.
#include "cli/command.h"
#include "cli/files.h"
#include "harness/core/streams.h"
#include "harness/json/json.h"
#include "reports/cost/cost.h"
#include "reports/diagnosis/document.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct DiagnoseOptions {
  std::vector<std::string> dirs;
  std::string rules;
  std::string fail_on;
  std::string json;
  std::string markdown;
  report::PriceFlags prices;
  bool injected = false;
};

ExitCode run_diagnose(const DiagnoseOptions& options) {
  const std::vector<report::Rule> rules =
      options.rules.empty() ? report::shipped_rules() : report::load_rules(options.rules);
  const RunSet runs(read_runs(options.dirs), options.injected ? Injected::include : Injected::exclude);
  if (const std::string note = injected_text(runs); !note.empty()) say("assay: diagnose: {}\n", note);
  const std::vector<report::Diagnosis> all = report::diagnose(runs, rules);
  const report::PriceSource prices = report::load_prices(options.prices);
  say_unused_prices("diagnose", runs, prices);
  const report::Document document = report::diagnosis_document(runs, all, prices);
  if (!options.markdown.empty()) write_named_file("diagnose", options.markdown, report::render_markdown(document));
  if (!options.json.empty())
    write_named_file("diagnose", options.json, dump_document(report::diagnosis_json(all, prices)));
  print(document, {options.markdown, options.json});
  if (runs.entries().empty()) say("assay: diagnose: no finished case in {}\n", fmt::join(options.dirs, ", "));
  // Without --fail-on findings are an answer, not a failure.
  if (options.fail_on.empty()) return report::exit_code_of(all, std::nullopt);
  return report::exit_code_of(all, options.fail_on == "bad" ? report::RuleState::bad : report::RuleState::warn);
}

}  // namespace

Command diagnose_command(CLI::App& root) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* app = root.add_subcommand("diagnose", "What holds it back? Applies rules to finished runs");
  app->add_option("dirs", options->dirs, "Run directories")->required();
  app->add_option("--rules", options->rules, "Judge by the rules in FILE instead of configs/diagnosis/rules.json");
  app->add_option("--fail-on", options->fail_on, "Exit with 1 if a rule is at least this: bad or warn")
      ->check(CLI::IsMember({"bad", "warn"}));
  app->add_option("--json", options->json, "Write all judgements as JSON to FILE (- for stdout)");
  app->add_option("--md", options->markdown, "Write the diagnosis as Markdown to FILE (- for stdout)");
  app->add_option("--prices", options->prices.file, "Prices of machines: JSON or a SkyPilot catalogue (CSV)");
  app->add_option("--price", options->prices.price, "Price of each whole machine in USD per hour");
  app->add_flag("--injected", options->injected, "Judge records with injected faults too");
  app->footer(
      "Exit codes: 1 a rule is at or above --fail-on; 3 no rule could be judged, or with --fail-on one is too noisy to "
      "say.");
  return {app, [options] { return run_diagnose(*options); }};
}

}  // namespace assay::cli
