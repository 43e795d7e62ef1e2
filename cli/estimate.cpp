// assay estimate: the memory of a model's training step or of serving it, planned without running it.
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "workloads/estimate/document.h"
#include "workloads/estimate/formula.h"

#include <memory>

namespace assay::cli {

namespace {

struct EstimateOptions {
  estimate::Asked asked;
  std::string hardware;
  bool serve = false;
  estimate::AskedServing serving;
  Outputs outputs;

  ExitCode write(const auto& json, const std::string& text, ExitCode code) const {
    outputs.write_json([&] { return dump_document(json(), 2); });
    outputs.print(text);
    return code;
  }
};

ExitCode run_estimate(const EstimateOptions& options) {
  estimate::Asked asked = options.asked;
  if (!options.hardware.empty()) asked.hardware = hardware_named(options.hardware);
  if (options.serve) {
    const estimate::ServingEstimate serving(asked, options.serving);
    return options.write([&] { return serving.json(); }, serving.text(), serving.code());
  }
  if (estimate::needs_formula(asked)) {
    const estimate::FormulaEstimate formula(asked);
    return options.write([&] { return formula.json(); }, formula.text(), formula.code());
  }
  estimate::MemoryEstimator estimator(asked.model);
  if (asked.hardware) estimator.set_hardware(*asked.hardware);
  estimator.set(estimate::own_sets(asked));
  const estimate::Answer answer(estimator);
  return options.write([&] { return to_json(answer); }, to_text(answer), answer.code());
}

}  // namespace

Command estimate_command(CLI::App& root) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* app = root.add_subcommand("estimate", "Plan the memory of training or serving a model, without running it");
  app->add_option("model", options->asked.model,
                  "A model of configs/models, a file like them, or a Hugging Face config.json")
      ->required()
      ->type_name("MODEL");
  app->add_option("--set", options->asked.sets,
                  "The step and its ranks: micro_batch, seq, accumulate, precision, checkpointing, dp, zero; "
                  "default: the recipe's, in bf16. By formula: method, lora_rank, lora_targets, optimizer, offload, "
                  "tp, sp, pp, chunks, ep, cp, engine=torch. With --serve: weights, tp")
      ->type_name("NAME=VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--hardware", options->hardware,
                  "The sheet of a device that must hold it, by name or file; exit 1 if it does not fit")
      ->type_name("NAME")
      ->check(not_empty);
  CLI::Option* serve =
      app->add_flag("--serve", options->serve, "The memory of serving the model instead of training it");
  app->add_option("--context", options->serving.context, "Tokens of a sequence, prompt and answer; default: 4096")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->needs(serve);
  app->add_option("--concurrency", options->serving.concurrency, "Sequences at once; default: 1")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->needs(serve);
  app->add_option("--kv-dtype", options->serving.kv_dtype, "Of the cache: bf16, fp16, f32, fp8, int8; default: bf16")
      ->type_name("DTYPE")
      ->needs(serve);
  options->outputs.add_to(*app);
  return {app, [options] { return run_estimate(*options); }};
}

}  // namespace assay::cli
