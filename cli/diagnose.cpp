// assay diagnose: what holds the cases of finished runs back.
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/streams.h"
#include "harness/json/json.h"
#include "reports/cost/cost.h"
#include "reports/diagnosis/document.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct DiagnoseOptions {
  Runs runs;
  Outputs outputs;
  Prices prices;
  std::string rules, fail_on;
};

ExitCode run_diagnose(const DiagnoseOptions& options) {
  const std::vector<report::Rule> rules =
      options.rules.empty() ? report::shipped_rules() : report::load_rules(options.rules);
  const RunSet runs = options.runs.read();
  if (const std::string note = injected_text(runs); !note.empty()) say("assay: diagnose: {}\n", note);
  const std::vector<report::Diagnosis> all = report::diagnose(runs, rules);
  const report::PriceSource prices = report::load_prices(options.prices);
  say_unused_prices("diagnose", runs, prices);
  const report::Document document = report::diagnosis_document(runs, all, prices);
  options.outputs.write_pages(document);
  options.outputs.write_json([&] { return dump_document(report::diagnosis_json(all, prices)); });
  options.outputs.print(document);
  (void)options.runs.code_of(runs);  // says that there is no case; without any, no rule can be judged
  // Without --fail-on findings are an answer, not a failure.
  if (options.fail_on.empty()) return report::exit_code_of(all, std::nullopt);
  return report::exit_code_of(all, options.fail_on == "bad" ? report::RuleState::bad : report::RuleState::warn);
}

}  // namespace

Command diagnose_command(CLI::App& root) {
  auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* app = root.add_subcommand("diagnose", "Say what holds finished runs back, and what to do");
  options->runs.add_to(*app);
  app->add_option("--rules", options->rules, "Judge by these rules instead of configs/diagnosis/rules.json")
      ->type_name("FILE");
  app->add_option("--fail-on", options->fail_on, "Exit with 1 if a rule is at least this: bad or warn")
      ->check(CLI::IsMember({"bad", "warn"}));
  options->outputs.add_to(*app, {"--md"});
  options->prices.add_to(*app);
  app->footer(
      "Exit codes: 1 a rule is at or above --fail-on; 3 no rule could be judged, or with --fail-on one is too noisy to "
      "say.");
  return {app, [options] { return run_diagnose(*options); }};
}

}  // namespace assay::cli
