#include "workloads/estimate/formula.h"

#include "harness/core/configs.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/json/json.h"
#include "workloads/architecture/read.h"
#include "workloads/estimate/memory_estimate.h"
#include "workloads/estimate/own_architecture.h"
#include "workloads/estimate/sets.h"
#include "workloads/training/family.h"
#include "workloads/training/planned_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::estimate {

namespace {

// What only formulas have. Limits of numbers are planning::problem_of's, which says more.
Schema formula_schema() {
  using namespace planning;
  constexpr double most = 1e9;
  return {axis::choice<Method>("method").runs({"full"}).doc("of training"),
          axis::integer("lora_rank", 16).range(1, 65536).doc("of adapters"),
          axis::choice<Targets>("lora_targets").runs({"all"}).doc("matrices with adapters"),
          axis::choice<Optimizer>("optimizer").runs({"adamw"}).doc("its state"),
          axis::choice<Offload>("offload").runs({"none"}).doc("to the host's memory"),
          axis::choice<Engine>("engine").runs({"assay"}).doc("whose step it is"),
          axis::flag("sp").doc("the ranks of tp divide the sequence"),
          axis::integer("chunks", 1).range(0, most).doc("pieces of a pipeline's stages"),
          axis::integer("ep", 1).range(0, most).doc("ranks that share experts"),
          axis::integer("cp", 1).range(0, most).doc("ranks that share a sequence"),
          axis::integer("gpus_per_host", gpus_of_a_host).range(1, 1024).doc("neighbours with fast links")};
}

Schema whole_schema() {
  constexpr double most = 1e9;
  Schema schema = formula_schema();
  for (const char* name : {"micro_batch", "seq", "accumulate"})
    schema.push_back(axis::integer(name, 1).range(1, most).doc("of the step"));
  schema.push_back(
      axis::choice("precision", {"f32", "tf32", "bf16", "fp16", "fp8"}).runs({"bf16"}).doc("of activations"));
  schema.push_back(axis::choice<nn::Checkpointing>("checkpointing").runs({"none"}).doc("computed again"));
  for (const char* name : {"dp", "tp", "pp"}) schema.push_back(axis::integer(name, 1).range(0, most).doc("ranks"));
  schema.push_back(axis::integer("zero", 0).range(0, most).doc("what ranks divide"));
  return schema;
}

// A name that both have; any other one is for the formulas' schema, which has all.
bool is_of_both(const std::string& name) {
  static const Schema all = whole_schema(), of_formulas = formula_schema();
  const auto has = [&](const Schema& schema) {
    return std::ranges::find(schema, name, &ParamSpec::name) != schema.end();
  };
  return has(all) && !has(of_formulas);
}

// A transformer that Assay trains; nothing for architectures that it does not.
std::optional<LoadedModel> trainable(const std::filesystem::path& file) {
  try {
    return load_model(file);
  } catch (const UsageError&) {
    if (!architecture::is_config_json(read_json(file))) throw;
    return std::nullopt;
  }
}

planning::Precision precision_of(const std::string& word) {
  if (const auto precision = from_word<planning::Precision>(word)) return *precision;
  throw UsageError(fmt::format("precision={}: formulas know f32, bf16 and fp16; use precision={}", word,
                               word == "tf32" ? "f32" : "bf16"));
}

}  // namespace

architecture::Architecture load_architecture(const std::string& model) {
  const std::filesystem::path file = find_config("models", "model", model);
  const std::string source = file.string(), name = training::model_name(file);
  const Json json = read_json(file);
  if (architecture::is_config_json(json)) return architecture::read_architecture(json, source, name);
  const LoadedModel loaded = load_model(file);
  if (!loaded.language)
    throw UsageError(fmt::format("{}: formulas are of transformers; of models of images, vit is known", source));
  return architecture_of(*loaded.language);
}

std::vector<std::string> own_sets(const Asked& asked) {
  std::vector<std::string> sets;
  for (const auto& [name, value] : pairs_of(asked.sets))
    if (name != "engine" || value != "assay") sets.push_back(fmt::format("{}={}", name, value));
  return sets;
}

bool needs_formula(const Asked& asked) {
  const std::filesystem::path file = find_config("models", "model", asked.model);
  const auto loaded = trainable(file);
  if (!loaded) {
    load_architecture(asked.model);  // says what is wrong with it, if that is why it cannot be trained
    return true;
  }
  if (!loaded->language) return false;
  const auto pairs = pairs_of(own_sets(asked));
  return std::ranges::any_of(pairs, [](const auto& pair) {
    return !is_of_both(pair.first) || ((pair.first == "tp" || pair.first == "pp") && pair.second != "1");
  });
}

FormulaEstimate::FormulaEstimate(const Asked& asked)
    : model_(load_architecture(asked.model)), hardware_(asked.hardware) {
  const Schema schema = whole_schema();
  Params params;
  for (const ParamSpec& spec : schema) params.set(spec.name, spec.defaults.front());
  constexpr std::int64_t usual_seq = 4096;
  params.set("seq", std::min(usual_seq, model_.positions));
  trainable_ = trainable(find_config("models", "model", asked.model)).has_value();
  if (trainable_) {  // then the step is the recipe's
    const training::Settings recipe = MemoryEstimator(asked.model).settings();
    params.set("micro_batch", recipe.micro_batch);
    params.set("accumulate", recipe.accumulate);
    params.set("seq", recipe.seq);
  }
  const auto pairs = pairs_of(asked.sets);
  set_params(schema, pairs, params);
  step_ = {.micro_batch = params.integer("micro_batch"),
           .seq = params.integer("seq"),
           .accumulate = params.integer("accumulate"),
           .precision = precision_of(params.text("precision")),
           .recompute = static_cast<planning::Recompute>(params.choice<nn::Checkpointing>("checkpointing")),
           .method = params.choice<planning::Method>("method"),
           .lora_rank = params.integer("lora_rank"),
           .lora_targets = params.choice<planning::Targets>("lora_targets"),
           .optimizer = params.choice<planning::Optimizer>("optimizer"),
           .offload = params.choice<planning::Offload>("offload")};
  layout_ = {.dp = params.integer("dp"),
             .tp = params.integer("tp"),
             .sp = params.flag("sp"),
             .pp = params.integer("pp"),
             .chunks = params.integer("chunks"),
             .ep = params.integer("ep"),
             .cp = params.integer("cp"),
             .zero = static_cast<int>(params.integer("zero"))};
  host_ranks_ = params.integer("gpus_per_host");
  if (step_.seq > model_.positions)
    throw UsageError(fmt::format("{}: seq {} is beyond the model's {} positions; the nearest is seq={}", model_.name,
                                 step_.seq, model_.positions, model_.positions));
  const bool adapters = std::ranges::any_of(pairs, [](const auto& pair) { return pair.first.starts_with("lora_"); });
  if (adapters && step_.method == planning::Method::full)
    throw UsageError("lora_rank and lora_targets are of adapters; use method=lora or qlora");
  if (const auto problem = planning::problem_of(model_, step_, layout_)) throw UsageError(*problem);
  if (hardware_) check_offload(step_.offload, *hardware_);
  const planning::Device on = device();
  engine_ = params.choice<planning::Engine>("engine");
  if (engine_ == planning::Engine::torch) {
    plan_torch();
    return;
  }
  stages_ = planning::memory_of(model_, step_, layout_, static_cast<std::uint64_t>(on.bytes));
  if (total() > 1e18)
    throw UsageError(
        fmt::format("micro_batch={} x seq={}: the activations are beyond what can be counted; use micro_batch=1",
                    step_.micro_batch, step_.seq));
  if (!fits().value_or(true)) others_ = planning::nearest_that_fit(model_, step_, layout_, on);
}

void FormulaEstimate::plan_torch() {
  if (model_.type == "llama") model_ = with_separate_projections(std::move(model_));
  const auto reserved = [this](const planning::Step& step, const planning::Layout& layout) -> std::optional<double> {
    if (planning::problem_of(model_, step, layout) || planning::torch_problem(model_, step, layout))
      return std::nullopt;
    return planning::torch_memory(model_, step, layout).reserved;
  };
  if (const auto problem = planning::torch_problem(model_, step_, layout_)) throw UsageError(*problem);
  torch_ = planning::torch_memory(model_, step_, layout_);
  const planning::Uses& uses = torch_->uses;
  const auto of = [&](planning::Use use) { return uses[static_cast<std::size_t>(use)]; };
  planning::StageMemory memory{.stage = planning::stages_of(model_, step_, layout_).front(), .terms = {}, .host = 0};
  memory.terms = {.weights = of(planning::Use::weights),
                  .gradients = of(planning::Use::gradients),
                  .optimizer = of(planning::Use::optimizer),
                  .activations = of(planning::Use::activations),
                  .workspace = of(planning::Use::workspace),
                  .communication = of(planning::Use::communication),
                  .allocator = torch_->reserved - torch_->tensors};
  stages_ = {memory};
  if (!fits().value_or(true)) others_ = planning::nearest_that_fit(model_, step_, layout_, device(), reserved);
}

std::uint64_t counted(double bytes) {
  constexpr double most = 1e18;
  if (bytes <= most) return static_cast<std::uint64_t>(std::ceil(bytes));
  throw UsageError(
      "a step moves more bytes than can be counted; use a smaller accumulate, micro_batch or seq, such as "
      "accumulate=1");
}

void check_offload(planning::Offload offload, const HardwareSheet& sheet) {
  if (offload != planning::Offload::none && sheet.kind == "cpu")
    throw UsageError(fmt::format("offload={}: {} is a CPU, whose memory is the host's already; use offload=none",
                                 word_of(offload), sheet.name));
}

planning::Device device_of(const HardwareSheet& sheet) {
  planning::Device device{.bytes = static_cast<double>(sheet.memory_bytes.value_or(0))};
  if (sheet.kind == "cpu") return device;
  device.alone = static_cast<double>(training::gpu_libraries_bytes);
  device.together = device.alone + static_cast<double>(training::gpu_communication_bytes);
  return device;
}

planning::Device FormulaEstimate::device() const {
  if (hardware_) return device_of(*hardware_);
  HardwareSheet unknown;
  unknown.kind = "gpu";
  return device_of(unknown);
}

double FormulaEstimate::allowance() const { return device().allowance(layout_.ranks()); }

double FormulaEstimate::total() const { return planning::largest(stages_) + allowance(); }

std::optional<bool> FormulaEstimate::fits() const {
  if (!hardware_ || !hardware_->memory_bytes) return std::nullopt;
  return total() <= static_cast<double>(*hardware_->memory_bytes);
}

ExitCode FormulaEstimate::code() const {
  if (const auto held = fits()) return *held ? ExitCode::ok : ExitCode::failed;
  return hardware_ ? ExitCode::no_data : ExitCode::ok;
}

}  // namespace assay::estimate
