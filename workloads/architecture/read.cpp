#include "workloads/architecture/read.h"

#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "workloads/architecture/readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace assay::architecture {

namespace {

struct Known {
  const char* type;          // model_type
  const char* architecture;  // for files without a model_type
  void (*read)(Members&, Architecture&);
  const char* width = "hidden_size";
};

constexpr std::array<Known, 21> known = {{{"bert", "BertForMaskedLM", read_bert},
                                          {"deepseek_v2", "DeepseekV2ForCausalLM", read_deepseek},
                                          {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek},
                                          {"falcon", "FalconForCausalLM", read_falcon},
                                          {"gemma", "GemmaForCausalLM", read_llama},
                                          {"gemma2", "Gemma2ForCausalLM", read_llama},
                                          {"gemma3_text", "Gemma3ForCausalLM", read_llama},
                                          {"gpt2", "GPT2LMHeadModel", read_gpt2, "n_embd"},
                                          {"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox},
                                          {"gpt_oss", "GptOssForCausalLM", read_mixture},
                                          {"llama", "LlamaForCausalLM", read_llama},
                                          {"llama4_text", "Llama4ForCausalLM", read_mixture},
                                          {"mistral", "MistralForCausalLM", read_llama},
                                          {"mixtral", "MixtralForCausalLM", read_mixture},
                                          {"phi3", "Phi3ForCausalLM", read_llama},
                                          {"qwen2", "Qwen2ForCausalLM", read_llama},
                                          {"qwen2_moe", "Qwen2MoeForCausalLM", read_mixture},
                                          {"qwen3", "Qwen3ForCausalLM", read_llama},
                                          {"qwen3_moe", "Qwen3MoeForCausalLM", read_mixture},
                                          {"roberta", "RobertaForMaskedLM", read_bert},
                                          {"vit", "ViTForImageClassification", read_vit}}};

const Known* refuse(const Cursor& at, const std::string& name) {
  const auto types = known_types();
  const auto close = nearest(name, types);
  at.error(fmt::format("the architecture {} is not known{}; known: {}", in_quotes(name),
                       close ? fmt::format(", did you mean \"{}\"?", *close) : "", joined(types)));
  return nullptr;
}

const Known* kind_of(Members& members) {
  const auto architectures = members.texts("architectures").value_or(std::vector<std::string>());
  if (const auto type = members.given("model_type")) {
    const auto name = type->text();
    if (!name) return nullptr;
    const auto found = std::ranges::find(known, *name, [](const Known& each) { return std::string_view(each.type); });
    return found != known.end() ? &*found : refuse(*type, *name);
  }
  if (architectures.empty()) {
    members.cursor().error("\"model_type\" is missing");
    return nullptr;
  }
  const auto found = std::ranges::find(known, architectures.front(),
                                       [](const Known& each) { return std::string_view(each.architecture); });
  return found != known.end() ? &*found : refuse(members.cursor(), architectures.front());
}

void read_members(Members& members, Architecture& model) {
  const Known* kind = kind_of(members);
  if (!kind) return;
  model.type = kind->type;
  model.width = members.size(kind->width);
  // Gemma3TextConfig's default, which its files leave out.
  if (model.type == "gemma3_text")
    model.vocabulary = members.size_or("vocab_size", 262208);
  else if (model.type != "vit")
    model.vocabulary = members.size("vocab_size");
  const bool own = model.type == "gpt2" || model.type == "vit" || model.type == "falcon" || model.type == "bert" ||
                   model.type == "roberta";
  if (!own) model.positions = members.size_or("max_position_embeddings", 131072);
  kind->read(members, model);
}

// Whether sums of parameters stay far within 64 bits, as members that are each of a possible size may not.
bool is_countable(const Architecture& model) {
  constexpr double most = 1e16;
  double total = 0;
  const auto add = [&](const std::vector<Weight>& weights, double times) {
    for (const Weight& weight : weights)
      total += times * static_cast<double>(weight.copies) * static_cast<double>(weight.in + 1) *
               static_cast<double>(weight.out);
  };
  add(model.first, 1), add(model.last, 1);
  for (const Layer& layer : model.kinds) add(layer.weights, static_cast<double>(max_layers));
  return total <= most;
}

}  // namespace

std::vector<std::string> known_types() {
  std::vector<std::string> types;
  types.reserve(known.size());
  for (const Known& each : known) types.emplace_back(each.type);
  return types;
}

bool is_config_json(const Json& json) {
  return json.is_object() && !json.contains("schema") &&
         (json.contains("model_type") || json.contains("architectures") || json.contains("text_config"));
}

Architecture read_architecture(const Json& json, const std::string& source, const std::string& name) {
  Problems problems(source);
  const Cursor root(json, problems);
  if (!root.object()) problems.raise();
  Architecture model;
  model.name = name;
  const auto nested = root.find("text_config");
  const bool inside = nested && nested->json().is_object();
  Members members(inside ? *nested : root);
  read_members(members, model);
  auto stored = members.given("quantization_config");
  if (!stored && inside)
    if (const auto outer = root.find("quantization_config"); outer && !outer->json().is_null()) stored = outer;
  if (stored) model.stored = read_quantization(*stored, model);
  problems.raise();
  if (!is_countable(model)) {
    root.error("the model has more parameters than can be counted");
    problems.raise();
  }
  if (inside) model.notes.emplace_back("only the language model of text_config is counted, not what sees or hears");
  for (const std::string& each : members.unknown())
    model.notes.push_back(
        fmt::format("the member {} is not known; if it changes memory, this is not counted", in_quotes(each)));
  return model;
}

}  // namespace assay::architecture
