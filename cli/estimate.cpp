// assay estimate: the memory of a model's training step, planned without running it.
#include "cli/command.h"
#include "cli/options.h"
#include "harness/json/json.h"
#include "workloads/estimate/document.h"

#include <memory>

namespace assay::cli {

namespace {

struct EstimateOptions {
  std::string model;
  std::vector<std::string> sets;
  std::string hardware;
  Outputs outputs;
};

ExitCode run_estimate(const EstimateOptions& options) {
  estimate::MemoryEstimator estimator(options.model);
  if (!options.hardware.empty()) estimator.set_hardware(hardware_named(options.hardware));
  estimator.set(options.sets);
  const estimate::Answer answer(estimator);
  options.outputs.write_json([&] { return dump_document(to_json(answer), 2); });
  options.outputs.print(to_text(answer));
  return answer.code();
}

}  // namespace

Command estimate_command(CLI::App& root) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* app = root.add_subcommand("estimate", "Plan the memory of a training step, without running it");
  app->add_option("model", options->model, "A model of configs/models, a file like them, or a Hugging Face config.json")
      ->required()
      ->type_name("MODEL");
  app->add_option("--set", options->sets,
                  "The step and its ranks: micro_batch, seq, accumulate, precision, checkpointing, dp, zero; "
                  "default: the recipe's, in bf16")
      ->type_name("NAME=VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--hardware", options->hardware,
                  "The sheet of a device that must hold it, by name or file; exit 1 if it does not fit")
      ->type_name("NAME")
      ->check(not_empty);
  options->outputs.add_to(*app);
  return {app, [options] { return run_estimate(*options); }};
}

}  // namespace assay::cli
