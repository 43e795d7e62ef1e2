// assay estimate: the memory of a model's training step, planned without running it.
#include "cli/command.h"
#include "cli/memory_estimate.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "workloads/parallel/formulas.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct EstimateOptions {
  std::string model;
  std::vector<std::string> sets;
  std::string hardware;
  bool json = false;
};

std::string size(double bytes) { return format_bytes(bytes); }
std::string size(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::vector<std::pair<const char*, std::uint64_t>> terms_of(const MemoryEstimate& estimate) {
  const nn::MemoryPlan& memory = estimate.memory;
  return {{"weights", memory.weights},         {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
          {"activations", memory.activations}, {"workspace", memory.workspace}, {"communication", memory.communication},
          {"allowance", estimate.allowance}};
}

parallel::TransformerShape shape_of(const transformer::Config& c, const training::Settings& settings) {
  return {.s = settings.seq,
          .b = settings.micro_batch,
          .h = c.width,
          .a = c.heads,
          .k = c.kv_heads,
          .d = c.head_dim,
          .f = c.mlp_width,
          .layers = c.layers,
          .v = c.vocabulary,
          .gated = c.mlp == ops::ActivationKind::silu_gate,
          .rms = c.norm == ops::NormKind::rms,
          .tied = c.tied};
}

// Why each figure differs from the plan's.
constexpr const char* korthikanti_differs =
    "16-bit activations with dropout masks; here there is no dropout, activations have the step's precision, attention "
    "keeps only the logarithms of its sums (theirs are what its selective recomputation is about), and logits are held "
    "a "
    "block at a time";
constexpr const char* megatron_differs =
    "18 bytes per parameter, as here in 16 bits on a GPU; its activations assume selective recomputation and dropout, "
    "and ignore gated MLPs and shared heads of keys";
constexpr const char* zero_differs =
    "16 bytes per parameter with 16-bit gradients; here gradients are f32: 18 bytes in 16 bits, 16 in f32; "
    "communication buffers are not counted";

Json formulas_json(const MemoryEstimator& estimator, const MemoryEstimate& made) {
  using namespace parallel;
  const Layout& layout = made.layout;
  Json json = {{"korthikanti", nullptr}, {"megatron", nullptr}};
  if (const auto& language = estimator.loaded().language) {
    const TransformerShape shape = shape_of(*language, made.settings);
    const auto activations = [&](Recompute recompute) { return korthikanti_activations(shape, recompute); };
    json["korthikanti"] = {{"source", korthikanti_source},
                           {"activations",
                            {{"none", activations(Recompute::none)},
                             {"selective", activations(Recompute::selective)},
                             {"full", activations(Recompute::full)}}},
                           {"value", activations(static_cast<Recompute>(made.settings.checkpointing))},
                           {"differs", korthikanti_differs}};
    const double state = megatron_weights_and_optimizer(shape, layout.dp, layout.zero > 0);
    const double kept = megatron_activations(shape);
    json["megatron"] = {{"source", megatron_source},
                        {"weights_and_optimizer", state},
                        {"activations", kept},
                        {"value", state + kept},
                        {"differs", megatron_differs}};
  }
  const auto parameters = static_cast<double>(estimator.loaded().parameters());
  Json stages = Json::array();
  for (int stage = 0; stage <= max_zero; ++stage) stages.push_back(zero_bytes(parameters, stage, layout.dp));
  json["zero"] = {{"source", zero_source},
                  {"stages", stages},
                  {"value", zero_bytes(parameters, layout.zero, layout.dp)},
                  {"differs", zero_differs}};
  return json;
}

Json to_json(const MemoryEstimator& estimator, const MemoryEstimate& made, const std::vector<Alternative>& others) {
  const training::Settings& settings = made.settings;
  const auto fits = estimator.fits(made);
  Json json = {{"schema", 1}, {"model", estimator.name()}, {"parameters", estimator.loaded().parameters()}};
  json["layout"] = {{"dp", made.layout.dp}, {"tp", made.layout.tp}, {"pp", made.layout.pp}, {"zero", made.layout.zero}};
  json["step"] = {{"micro_batch", settings.micro_batch},
                  {"seq", settings.seq > 0 ? Json(settings.seq) : Json()},
                  {"accumulate", settings.accumulate},
                  {"precision", settings.precision},
                  {"checkpointing", word_of(settings.checkpointing)},
                  {"optimizer", word_of(settings.recipe.options.optimizer)}};
  json["device"] = name_of(estimator.device());
  json["total_bytes"] = made.total();
  Json terms = Json::object();
  for (const auto& [name, bytes] : terms_of(made)) terms[name] = bytes;
  json["ranks"] = Json::array();
  for (std::int64_t rank = 0; rank < made.layout.ranks(); ++rank)
    json["ranks"].push_back({{"rank", rank}, {"stage", 0}, {"terms", terms}, {"total_bytes", made.total()}});
  json["hardware"] = nullptr;
  json["fits"] = fits ? Json(*fits) : Json();
  json["short_by_bytes"] = nullptr;
  if (const auto& sheet = estimator.hardware()) {
    json["hardware"] = {{"name", sheet->name},
                        {"memory_bytes", sheet->memory_bytes ? Json(*sheet->memory_bytes) : Json()}};
    if (fits) json["short_by_bytes"] = *fits ? 0 : made.total() - *sheet->memory_bytes;
  }
  json["would_fit"] = Json::array();
  for (const Alternative& other : others)
    json["would_fit"].push_back({{"set", other.set}, {"total_bytes", other.estimate.total()}});
  json["formulas"] = formulas_json(estimator, made);
  return json;
}

void print_judgement(const MemoryEstimator& estimator, const MemoryEstimate& made,
                     const std::vector<Alternative>& others) {
  const auto& sheet = estimator.hardware();
  if (!sheet) return;
  fmt::print("\n{}: ", sheet->name);
  if (!sheet->memory_bytes) {
    fmt::print("its sheet has no memory_bytes, so whether this fits cannot be said\n");
    return;
  }
  const std::uint64_t memory = *sheet->memory_bytes;
  if (made.total() <= memory) {
    fmt::print("fits its {}, with {} to spare\n", size(memory), size(memory - made.total()));
    return;
  }
  fmt::print("does not fit its {}: short by {}\n", size(memory), size(made.total() - memory));
  if (others.empty())
    fmt::print("  nothing would fit: no smaller micro_batch, not checkpointing=full, not zero=3 on 1024 ranks\n");
  for (const Alternative& other : others)
    fmt::print("  would fit: --set {}  ({})\n", other.set, size(other.estimate.total()));
}

void print_formulas(const Json& formulas) {
  fmt::print("\npublished formulas, for comparison\n");
  const auto line = [&](const char* name, const char* of) {
    const Json& formula = formulas[name];
    if (formula.is_null()) return;
    fmt::print("  {:<12} {} {}; {}\n  {:<12} differs: {}\n", name, size(formula["value"].get<double>()), of,
               formula["source"].get<std::string>(), "", formula["differs"].get<std::string>());
  };
  line("korthikanti", "of activations");
  line("megatron", "of weights, optimizer and activations");
  line("zero", "of weights, gradients and optimizer");
}

void print_estimate(const MemoryEstimator& estimator, const MemoryEstimate& made,
                    const std::vector<Alternative>& others) {
  const training::Settings& settings = made.settings;
  fmt::print("{}: {} parameters\n", one_line(estimator.name()),
             format_number(static_cast<double>(estimator.loaded().parameters()), 0));
  fmt::print("micro_batch {}", settings.micro_batch);
  if (settings.seq > 0) fmt::print(", seq {}", settings.seq);
  fmt::print(", accumulate {}, {}, checkpointing {}, on a {}\n", settings.accumulate, settings.precision,
             word_of(settings.checkpointing), estimator.device() == DeviceKind::cpu ? "CPU" : "GPU");
  if (made.layout.ranks() > 1 || made.layout.zero > 0) fmt::print("dp {}, zero {}\n", made.layout.dp, made.layout.zero);
  fmt::print("\n{:<14} {:>10}{}\n", "memory", size(made.total()), made.layout.dp > 1 ? " on each rank" : "");
  for (const auto& [name, bytes] : terms_of(made))
    if (bytes > 0) fmt::print("  {:<12} {:>10}\n", name, size(bytes));
  if (made.allowance > 0)
    fmt::print("  allowance is an upper bound of what the GPU's libraries keep there; all else is planned\n");
  print_judgement(estimator, made, others);
  print_formulas(formulas_json(estimator, made));
}

ExitCode estimate(const EstimateOptions& options) {
  MemoryEstimator estimator(options.model, options.hardware);
  estimator.set(options.sets);
  const MemoryEstimate made = estimator.estimate();
  const auto fits = estimator.fits(made);
  const std::vector<Alternative> others = fits.value_or(true) ? std::vector<Alternative>() : estimator.alternatives();
  if (options.json)
    fmt::print("{}", dump_document(to_json(estimator, made, others), 2));
  else
    print_estimate(estimator, made, others);
  if (fits) return *fits ? ExitCode::ok : ExitCode::failed;
  return estimator.hardware() ? ExitCode::no_data : ExitCode::ok;
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
                  "default: the recipe's")
      ->type_name("NAME=VALUE,...")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option("--hardware", options->hardware,
                  "The sheet of a device that must hold it, by name or file; exit 1 if it does not fit")
      ->type_name("NAME");
  app->add_flag("--json", options->json, "As JSON");
  return {app, [options, app] {
            if (app->count("--hardware") > 0 && options->hardware.empty())
              throw UsageError("estimate: --hardware needs a name");
            return estimate(*options);
          }};
}

}  // namespace assay::cli
