// assay size: which machines hold a model, and how long and at what cost they train it, before any is rented.
#include "cli/command.h"
#include "cli/files.h"
#include "harness/json/json.h"
#include "reports/sizing/sizing.h"
#include "workloads/estimate/layout_search.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

namespace assay::cli {

namespace {

using namespace report::sizing;

ExitCode run_size(const SizeFlags& flags, bool json) {
  SizeRequest request = read_request(flags);
  estimate::LayoutSearch search(flags.model, flags.sets, request.gpus);
  const Planner planner{
      .model = search.estimator().name(),
      .precision = search.settings().precision,
      .seq = search.settings().seq,
      .on = [&](const HardwareSheet& sheet, std::int64_t gpus) { return search.on(sheet, gpus); },
      .fewest_above = [&](const HardwareSheet& sheet, std::int64_t gpus) { return search.fewest_above(sheet, gpus); }};
  std::optional<RunSet> runs;
  if (!flags.from.empty()) runs.emplace(read_runs(flags.from), Injected::exclude);
  const SizeAnswer answer = size(std::move(request), runs ? &*runs : nullptr, planner);
  fmt::print("{}", json ? dump_document(to_json(answer), 2) : to_text(answer));
  return answer.code();
}

}  // namespace

Command size_command(CLI::App& root) {
  struct Options : SizeFlags {
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("size", "Which machines hold a model, how fast, at what cost: before renting");
  app->add_option("model", options->model, "A model of configs/models, a file like them, or a Hugging Face config.json")
      ->required()
      ->type_name("MODEL");
  app->add_option("--tokens", options->tokens, "Tokens, or images, of the whole training: 2e12, 300B")
      ->required()
      ->type_name("N");
  app->add_option("--budget", options->budget, "USD that the training may cost")->type_name("USD");
  app->add_option("--deadline", options->deadline, "Hours that it may take")->type_name("HOURS");
  app->add_option("--hardware", options->hardware, "Sheets by name or file; default: all GPUs of configs/hardware")
      ->type_name("A,B");
  app->add_option("--gpus", options->gpus, "How many: both ends and the powers of two between; default: 1..64")
      ->type_name("LOW..HIGH");
  app->add_option("--set", options->sets, "The step: seq, accumulate, precision; default: the recipe's, in bf16")
      ->type_name("NAME=VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--from", options->from, "Run directories with measured steps of this model")->type_name("RUN");
  app->add_option("--anchor", options->anchors, "Speed of one GPU in your own framework: h100-sxm=9600")
      ->type_name("MACHINE=TOKENS_PER_S")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--prices", options->prices, "Prices of machines: JSON or a SkyPilot catalogue (CSV)")
      ->type_name("FILE");
  app->add_flag("--json", options->json, "As JSON");
  app->footer("Exit codes: 1 nothing fits; 3 what is known does not suffice to say.");
  return {app, [options] { return run_size(*options, options->json); }};
}

}  // namespace assay::cli
