#include "workloads/estimate/document.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "workloads/parallel/formulas.h"

#include <fmt/format.h>

namespace assay::estimate {

namespace {

std::string size(auto bytes) { return format_bytes(static_cast<double>(bytes)); }

std::vector<std::pair<std::string, std::uint64_t>> terms_of(const MemoryEstimate& estimate) {
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
constexpr const char* korthikanti_differs = "16-bit activations with dropout masks, and all logits at once";
constexpr const char* megatron_differs = "18 bytes per parameter, selective recomputation";
constexpr const char* zero_differs = "16 bytes per parameter; here 18 in 16 bits, 16 in f32";

Json formulas_json(const Answer& answer) {
  using namespace parallel;
  const Layout& layout = answer.made.layout;
  const LoadedModel& model = answer.estimator.loaded();
  Json json = {{"korthikanti", nullptr}, {"megatron", nullptr}};
  if (model.language) {
    const TransformerShape shape = shape_of(*model.language, answer.made.settings);
    const auto activations = [&](Recompute recompute) { return korthikanti_activations(shape, recompute); };
    json["korthikanti"] = {{"source", korthikanti_source},
                           {"activations",
                            {{"none", activations(Recompute::none)},
                             {"selective", activations(Recompute::selective)},
                             {"full", activations(Recompute::full)}}},
                           {"value", activations(static_cast<Recompute>(answer.made.settings.checkpointing))},
                           {"differs", korthikanti_differs}};
    const double state = megatron_weights_and_optimizer(shape, layout.dp, layout.zero > 0);
    const double kept = megatron_activations(shape);
    json["megatron"] = {{"source", megatron_source},
                        {"weights_and_optimizer", state},
                        {"activations", kept},
                        {"value", state + kept},
                        {"differs", megatron_differs}};
  }
  const auto parameters = static_cast<double>(model.parameters());
  std::vector<double> stages;
  for (int stage = 0; stage <= max_zero; ++stage) stages.push_back(zero_bytes(parameters, stage, layout.dp));
  json["zero"] = {
      {"source", zero_source}, {"stages", stages}, {"value", stages.at(layout.zero)}, {"differs", zero_differs}};
  return json;
}

std::string judgement_text(const Answer& answer) {
  const auto& sheet = answer.estimator.hardware();
  if (!sheet) return {};
  std::string text = fmt::format("\n{}: ", sheet->name);
  if (!answer.fits) return text + "its sheet has no memory_bytes, so whether this fits cannot be said\n";
  const std::uint64_t memory = *sheet->memory_bytes, total = answer.made.total();
  if (*answer.fits) return text + fmt::format("fits its {}, with {} to spare\n", size(memory), size(memory - total));
  text += fmt::format("does not fit its {}: short by {}\n", size(memory), size(total - memory));
  if (answer.others.empty())
    text += fmt::format("  nothing would fit: no smaller micro_batch, not checkpointing=full, {}\n",
                        answer.made.settings.precision == "fp8"
                            ? "and ranks do not divide what is trained in fp8 (zero); precision=bf16 can be divided"
                            : "not zero=3 on 1024 ranks");
  for (const Alternative& other : answer.others)
    text += fmt::format("  would fit: --set {}  ({})\n", other.set, size(other.estimate.total()));
  return text;
}

std::string formulas_text(const Json& formulas) {
  std::string text = "\npublished formulas, and what they assume (sources: --json)\n";
  for (const auto& [name, what] : {std::pair("korthikanti", "of activations"),
                                   {"megatron", "of weights, optimizer and activations"},
                                   {"zero", "of weights, gradients and optimizer"}})
    if (const Json& formula = formulas[name]; !formula.is_null())
      text += fmt::format("  {:<12} {:>10} {}; {}\n", name, size(formula["value"].get<double>()), what,
                          formula["differs"].get<std::string>());
  return text;
}

}  // namespace

Answer::Answer(const MemoryEstimator& asked) : estimator(asked), made(asked.estimate()), fits(asked.fits(made)) {
  if (!fits.value_or(true)) others = estimator.alternatives();
}

ExitCode Answer::code() const {
  if (fits) return *fits ? ExitCode::ok : ExitCode::failed;
  return estimator.hardware() ? ExitCode::no_data : ExitCode::ok;
}

Json to_json(const Answer& answer) {
  const auto& [estimator, made, fits, others] = answer;
  const training::Settings& settings = made.settings;
  Json json = {{"schema", 1},
               {"model", estimator.name()},
               {"parameters", estimator.loaded().parameters()},
               {"layout", json_of(made.layout)},
               {"step",
                {{"micro_batch", settings.micro_batch},
                 {"seq", settings.seq > 0 ? Json(settings.seq) : Json()},
                 {"accumulate", settings.accumulate},
                 {"precision", settings.precision},
                 {"checkpointing", word_of(settings.checkpointing)},
                 {"optimizer", word_of(settings.recipe.options.optimizer)}}},
               {"device", name_of(estimator.device())},
               {"total_bytes", made.total()},
               {"ranks", Json::array()}};
  for (std::int64_t rank = 0; rank < made.layout.ranks(); ++rank)
    json["ranks"].push_back(
        {{"rank", rank}, {"stage", 0}, {"terms", json_of(terms_of(made))}, {"total_bytes", made.total()}});
  const auto& sheet = estimator.hardware();
  json["hardware"] = sheet ? Json{{"name", sheet->name}, {"memory_bytes", json_of(sheet->memory_bytes)}} : Json();
  json["fits"] = json_of(fits);
  json["short_by_bytes"] = fits ? Json(*fits ? 0 : made.total() - *sheet->memory_bytes) : Json();
  json["would_fit"] = Json::array();
  for (const Alternative& other : others)
    json["would_fit"].push_back({{"set", other.set}, {"total_bytes", other.estimate.total()}});
  json["formulas"] = formulas_json(answer);
  return json;
}

std::string to_text(const Answer& answer) {
  const auto& [estimator, made, fits, others] = answer;
  const training::Settings& settings = made.settings;
  const parallel::Layout& layout = made.layout;
  std::string text = fmt::format(
      "{}: {} parameters\nmicro_batch {}{}, accumulate {}, {}, checkpointing {}, on a {}\n", one_line(estimator.name()),
      format_number(static_cast<double>(estimator.loaded().parameters()), 0), settings.micro_batch,
      settings.seq > 0 ? fmt::format(", seq {}", settings.seq) : "", settings.accumulate, settings.precision,
      word_of(settings.checkpointing), estimator.device() == DeviceKind::cpu ? "CPU" : "GPU");
  if (layout.ranks() > 1 || layout.zero > 0) text += fmt::format("dp {}, zero {}\n", layout.dp, layout.zero);
  text += fmt::format("\n{:<14} {:>10}{}\n", "memory", size(made.total()), layout.dp > 1 ? " on each rank" : "");
  for (const auto& [name, bytes] : terms_of(made))
    if (bytes > 0) text += fmt::format("  {:<12} {:>10}\n", name, size(bytes));
  if (made.allowance > 0)
    text += "  allowance is an upper bound of what the GPU's libraries keep there; all else is planned\n";
  return text + judgement_text(answer) + formulas_text(formulas_json(answer));
}

}  // namespace assay::estimate
