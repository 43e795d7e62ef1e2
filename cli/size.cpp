// assay size: which machines hold a model, and how long and at what cost they train it, before any is rented.
#include "cli/command.h"
#include "cli/files.h"
#include "cli/options.h"
#include "harness/core/error.h"
#include "harness/core/words.h"
#include "harness/device/device.h"
#include "harness/json/json.h"
#include "reports/sizing/sizing.h"
#include "workloads/estimate/formula_search.h"
#include "workloads/estimate/layout_search.h"

#include <memory>
#include <optional>

namespace assay::cli {

namespace {

using namespace report::sizing;

struct SizeOptions : SizeFlags {
  bool last = false;
  Outputs outputs;
};

ThisMachine look_at_machine(bool gpu) {
  const CudaProbe probe = gpu ? probe_cuda() : CudaProbe{.gpus = 1, .problem = {}};
  if (!probe.problem.empty())
    throw Error("size: --hardware here: the run is of GPUs, which cannot be used: " + probe.problem, ExitCode::no_data);
  const DeviceInfo info = make_device(gpu ? DeviceKind::cuda : DeviceKind::cpu, 0)->info();
  return {.device = info.name, .memory_bytes = info.memory_bytes, .devices = probe.gpus};
}

ExitCode run_size(SizeOptions flags) {
  if (flags.last && !flags.from.empty()) throw UsageError("size: --last and --from both name runs; give one of them");
  if (flags.last) flags.from = last_runs("size", 1);
  SizeRequest request = read_request(flags);
  request.look = look_at_machine;
  const estimate::Asked asked{.model = flags.model, .sets = flags.sets, .hardware = std::nullopt};
  std::optional<estimate::LayoutSearch> exact;
  std::optional<estimate::FormulaSearch> formula;
  Planner planner;
  const auto plan_by = [&](auto& search) {
    planner.on = [&](const HardwareSheet& sheet, std::int64_t gpus) { return search.on(sheet, gpus); };
    planner.fewest_above = [&](const HardwareSheet& sheet, std::int64_t gpus) {
      return search.fewest_above(sheet, gpus);
    };
  };
  if (estimate::needs_formula(asked)) {
    plan_by(formula.emplace(asked, request.gpus));
    planner.model = formula->name();
    planner.precision = word_of(formula->step().precision);
    planner.seq = formula->of_images() ? 0 : formula->step().seq;
    request.remarks.emplace_back(
        "memory by formula: Assay does not train all of these settings yet, and what is published is full training");
  } else {
    plan_by(exact.emplace(flags.model, flags.sets, request.gpus));
    planner.model = exact->estimator().name();
    planner.precision = exact->settings().precision;
    planner.seq = exact->settings().seq;
    if (planner.seq > 0 && planner.precision != "fp8" && planner.precision != "tf32")
      planner.wider = "--set method=full, which also divides layers and sequences and offloads, by formula";
  }
  std::optional<RunSet> runs;
  if (!flags.from.empty()) runs.emplace(read_runs(flags.from), Injected::exclude);
  const SizeAnswer answer = size(std::move(request), runs ? &*runs : nullptr, planner);
  flags.outputs.write_json([&] { return dump_document(to_json(answer), 2); });
  const report::Document document = document_of(answer);
  flags.outputs.write_pages(document);
  flags.outputs.print(document);
  return answer.code();
}

}  // namespace

Command size_command(CLI::App& root) {
  auto options = std::make_shared<SizeOptions>();
  CLI::App* app = root.add_subcommand("size", "Find which machines hold a model, how fast, at what cost");
  app->add_option("model", options->model, "A model of configs/models, a file like them, or a Hugging Face config.json")
      ->required()
      ->type_name("MODEL");
  app->add_option("--tokens", options->tokens, "Tokens, or images, of the whole training: 2e12, 300B")
      ->required()
      ->type_name("N");
  app->add_option("--max-usd", options->max_usd, "USD that the training may cost")->type_name("USD");
  app->add_option("--deadline", options->deadline, "Hours that it may take")->type_name("HOURS");
  app->add_option("--hardware", options->hardware,
                  "Sheets by name or file, or here; default: all GPUs of configs/hardware")
      ->type_name("A,B");
  app->add_option("--count", options->count,
                  "How many GPUs: 8,64, or a range with the powers of two in it; default: 1..64")
      ->type_name("N|LOW..HIGH,...");
  app->add_option(
         "--set", options->sets,
         "The step: seq, accumulate, precision; default: the recipe's, in bf16. By formula: method, lora_rank, "
         "lora_targets, optimizer, offload, tp, pp, chunks, ep, cp")
      ->type_name("NAME=VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--from", options->from, "Run directories with measured steps of this model")->type_name("DIR");
  app->add_flag("--last", options->last, "The newest run in runs/, instead of --from");
  app->add_option("--anchor", options->anchors, "Speed of one GPU in your own framework: h100-sxm=9600")
      ->type_name("MACHINE=TOKENS_PER_S")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--prices", options->prices, "Prices of machines: JSON or a SkyPilot catalogue (CSV)")
      ->type_name("FILE");
  options->outputs.add_to(*app, {"--html", "--md"});
  app->footer("Exit codes: 1 nothing fits; 3 what is known does not suffice to say.");
  return {app, [options] { return run_size(*options); }};
}

}  // namespace assay::cli
