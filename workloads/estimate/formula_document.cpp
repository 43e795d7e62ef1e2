// The answers of FormulaEstimate, as JSON and as text.
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "harness/machine/links.h"
#include "workloads/estimate/formula.h"
#include "workloads/estimate/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::estimate {

namespace {

constexpr const char* by_formula =
    "by formula, which no step of Assay confirms: it does not train all of these settings yet";

std::string bytes_text(double bytes) { return format_bytes(bytes); }
Json whole(double bytes) { return static_cast<std::uint64_t>(std::ceil(bytes)); }

// In the letters of the papers, for layers that are all alike; nothing for mixtures of experts and other encoders.
std::optional<parallel::TransformerShape> shape_of(const architecture::Architecture& model,
                                                   const planning::Step& step) {
  const architecture::Layer& layer = model.layer(0);
  const architecture::Attention& a = layer.attention;
  if (model.experts() > 0 || a.latent > 0 || model.labels > 0) return std::nullopt;
  return parallel::TransformerShape{.s = step.seq,
                                    .b = step.micro_batch,
                                    .h = model.width,
                                    .a = a.heads,
                                    .k = a.kv_heads,
                                    .d = a.key_dim,
                                    .f = layer.mlp_width,
                                    .layers = model.layers(),
                                    .v = model.vocabulary,
                                    .gated = model.gated,
                                    .rms = model.rms,
                                    .tied = model.tied};
}

}  // namespace

parallel::Sent over_link(std::string group, std::int64_t ranks, double bytes, bool within_host,
                         const HardwareSheet* sheet) {
  parallel::Sent sent{.group = std::move(group),
                      .ranks = ranks,
                      .bytes = counted(bytes),
                      .within_host = within_host,
                      .link = within_host ? "within a host" : "between hosts",
                      .seconds = std::nullopt};
  const HardwareSheet::Link* link = sheet && within_host ? fastest_link(*sheet) : nullptr;
  if (link) sent.link = link->name, sent.seconds = bytes / link->bytes_per_second;
  return sent;
}

std::vector<parallel::Sent> FormulaEstimate::sent() const {
  std::vector<parallel::Sent> all;
  for (const planning::Traffic& each : planning::traffic_of(model_, step_, layout_, host_ranks_))
    all.push_back(over_link(each.group, each.ranks, each.bytes, each.within_host, hardware_ ? &*hardware_ : nullptr));
  return all;
}

Json FormulaEstimate::terms_json(const planning::Terms& terms) const {
  return {{"weights", whole(terms.weights)},     {"gradients", whole(terms.gradients)},
          {"optimizer", whole(terms.optimizer)}, {"activations", whole(terms.activations)},
          {"workspace", whole(terms.workspace)}, {"communication", whole(terms.communication)},
          {"allocator", whole(terms.allocator)}, {"allowance", whole(allowance())}};
}

std::vector<std::string> FormulaEstimate::notes() const {
  std::vector<std::string> all = model_.notes;
  if (torch_)
    all.emplace_back(
        "tensors as torch 2.15 counts them of transformers 5.24 on a CPU, without dropout; what the caching allocator "
        "reserves is a model of it, not measured on a GPU");
  if (model_.stored && step_.method == planning::Method::full)
    all.emplace_back(
        "trained in full, weights are not quantised: method=qlora trains beside weights as they are stored");
  if (model_.stored && step_.method == planning::Method::lora)
    all.emplace_back("frozen weights are held as the file stores them");
  const double logits = planning::whole_logits(model_, step_, layout_, static_cast<std::uint64_t>(device().bytes));
  if (logits > 0 && !torch_)
    all.push_back(fmt::format("PyTorch's own loss keeps {} more: all logits and their gradient, in {} and f32",
                              bytes_text(logits), word_of(step_.precision)));
  return all;
}

Json FormulaEstimate::json() const {
  const double pcie = planning::offload_bytes(model_, step_, layout_);
  const HardwareSheet::Link* link = hardware_ ? pcie_link(*hardware_) : nullptr;
  Json json = {{"schema", 1},
               {"model", model_.name},
               {"by", "formula"},
               {"engine", word_of(engine_)},
               {"architecture", model_.type},
               {"parameters", model_.parameters()},
               {"active_parameters", model_.active_parameters()},
               {"trained_parameters", whole(planning::trained_parameters(model_, step_))},
               {"layout", json_of(layout_)},
               {"step",
                {{"micro_batch", step_.micro_batch},
                 {"seq", step_.seq},
                 {"accumulate", step_.accumulate},
                 {"precision", word_of(step_.precision)},
                 {"checkpointing", word_of(static_cast<nn::Checkpointing>(step_.recompute))},
                 {"method", word_of(step_.method)},
                 {"lora_rank", step_.method == planning::Method::full ? Json() : Json(step_.lora_rank)},
                 {"lora_targets", step_.method == planning::Method::full ? Json() : Json(word_of(step_.lora_targets))},
                 {"optimizer", word_of(step_.optimizer)},
                 {"offload", word_of(step_.offload)}}},
               {"device", hardware_ && hardware_->kind == "cpu" ? "cpu" : "cuda"},
               {"total_bytes", whole(total())},
               {"ranks", Json::array()},
               {"communication", json_of(sent())},
               {"bubble", planning::bubble_of(step_, layout_)}};
  // A row for each stage, all of whose ranks are alike.
  const std::int64_t alike = layout_.ranks() / layout_.pp;
  for (const planning::StageMemory& each : stages_)
    json["ranks"].push_back({{"rank", each.stage.index * alike},
                             {"alike", alike},
                             {"stage", each.stage.index},
                             {"terms", terms_json(each.terms)},
                             {"host_bytes", whole(each.host)},
                             {"total_bytes", whole(each.terms.total() + allowance())}});
  json["offload"] = pcie > 0 ? Json{{"bytes", counted(pcie)},
                                    {"link", link ? Json(link->name) : Json()},
                                    {"seconds_at_least", link ? Json(pcie / link->bytes_per_second) : Json()}}
                             : Json();
  json["torch"] = torch_ ? Json{{"tensor_bytes", whole(torch_->tensors)},
                                {"reserved_bytes", whole(torch_->reserved)},
                                {"kept_bytes", whole(torch_->kept)},
                                {"peaks",
                                 {{"forward", whole(torch_->forward)},
                                  {"backward", whole(torch_->backward)},
                                  {"optimizer", whole(torch_->optimizer)}}}}
                         : Json();
  json["hardware"] =
      hardware_ ? Json{{"name", hardware_->name}, {"memory_bytes", json_of(hardware_->memory_bytes)}} : Json();
  const auto held = fits();
  json["fits"] = json_of(held);
  json["short_by_bytes"] =
      held ? (*held ? Json(0) : whole(total() - static_cast<double>(*hardware_->memory_bytes))) : Json();
  json["would_fit"] = Json::array();
  for (const planning::Found& other : others_)
    json["would_fit"].push_back({{"set", other.changes(step_, layout_)},
                                 {"ranks", other.layout.ranks()},
                                 {"total_bytes", whole(other.bytes + device().allowance(other.layout.ranks()))}});
  json["notes"] = notes();
  json["formulas"] = {{"korthikanti", nullptr}, {"zero", nullptr}};
  if (const auto shape = shape_of(model_, step_)) {
    const double layers = std::ceil(planning::real(model_.layers()) / planning::real(layout_.pp));
    const double kept = layers * parallel::korthikanti_layer(*shape, step_.recompute, layout_.tp, layout_.sp) *
                        stages_.front().stage.in_flight;
    json["formulas"]["korthikanti"] = {
        {"source", parallel::korthikanti_source}, {"value", kept}, {"of", "activations of the first stage's layers"}};
  }
  if (step_.method == planning::Method::full)
    json["formulas"]["zero"] = {
        {"source", parallel::zero_source},
        {"value", parallel::zero_bytes(planning::real(model_.parameters()) / planning::real(layout_.tp * layout_.pp),
                                       layout_.zero, layout_.copies())},
        {"of", "weights, gradients and optimizer"}};
  return json;
}

std::string FormulaEstimate::text() const {
  const auto largest = std::ranges::max_element(stages_, {}, [](const auto& each) { return each.terms.total(); });
  const std::int64_t active = model_.active_parameters(), parameters = model_.parameters();
  const auto count = [](double value) { return format_number(value, 0); };
  std::string text =
      fmt::format("{}: {} parameters{}\n{}\n", one_line(model_.name), count(planning::real(parameters)),
                  active < parameters ? fmt::format(", {} of them used by a token", count(planning::real(active))) : "",
                  by_formula);
  text += fmt::format("micro_batch {}, seq {}, accumulate {}, {}, checkpointing {}, method {}, optimizer {}",
                      step_.micro_batch, step_.seq, step_.accumulate, word_of(step_.precision),
                      word_of(static_cast<nn::Checkpointing>(step_.recompute)), word_of(step_.method),
                      word_of(step_.optimizer));
  if (step_.offload != planning::Offload::none) text += ", offload " + word_of(step_.offload);
  if (step_.method != planning::Method::full)
    text += fmt::format("\n{} parameters train: adapters of rank {} on {}",
                        count(planning::trained_parameters(model_, step_)), step_.lora_rank,
                        step_.lora_targets == planning::Targets::all ? "all matrices" : word_of(step_.lora_targets));
  text += fmt::format("\ndp {}, tp {}{}, pp {}{}, ep {}, cp {}, zero {}: {}\n", layout_.dp, layout_.tp,
                      layout_.sp ? " with sp" : "", layout_.pp,
                      layout_.chunks > 1 ? fmt::format(" in {} chunks", layout_.chunks) : "", layout_.ep, layout_.cp,
                      layout_.zero, plural(layout_.ranks(), "rank"));
  text += fmt::format("\n{:<14} {:>10}{}\n", "memory", bytes_text(total()),
                      layout_.pp > 1 ? fmt::format(" on each rank of stage {}, the largest", largest->stage.index)
                      : layout_.ranks() > 1 ? " on each rank"
                                            : "");
  const Json terms = terms_json(largest->terms);
  for (const auto& [name, bytes] : terms.items())
    if (bytes.get<std::uint64_t>() > 0) text += fmt::format("  {:<13}{:>10}\n", name, bytes_text(bytes.get<double>()));
  if (torch_)
    text += fmt::format("PyTorch: tensors {}, reserved by its allocator {}\n", bytes_text(torch_->tensors),
                        bytes_text(torch_->reserved));
  if (largest->host > 0) text += fmt::format("{:<15}{:>10} a rank\n", "in the host", bytes_text(largest->host));
  if (const Json json = this->json(); !json["offload"].is_null()) {
    const Json& offload = json["offload"];
    text +=
        fmt::format("  {} a step over {}\n", bytes_text(offload["bytes"].get<double>()),
                    offload["link"].is_null() ? "PCI Express (with --hardware: how long that takes)"
                                              : fmt::format("{}, at least {}", offload["link"].get<std::string>(),
                                                            format_seconds(offload["seconds_at_least"].get<double>())));
  }
  if (const auto all = sent(); !all.empty()) {
    text += "\na rank sends in a step\n";
    for (const parallel::Sent& each : all)
      text += fmt::format("  {:<3}{:>6} {:>10}  {}{}\n", each.group, each.ranks,
                          bytes_text(static_cast<double>(each.bytes)), each.link,
                          each.seconds ? fmt::format(", at least {}", format_seconds(*each.seconds)) : "");
  }
  if (layout_.pp > 1) text += fmt::format("bubble: {:.1f} % of the step\n", 100 * planning::bubble_of(step_, layout_));
  if (hardware_) {
    const auto held = fits();
    text += fmt::format("\n{}: ", hardware_->name);
    if (!held) {
      text += "its sheet has no memory_bytes, so whether this fits cannot be said\n";
    } else {
      const auto memory = static_cast<double>(*hardware_->memory_bytes);
      text += *held
                  ? fmt::format("fits its {}, with {} to spare\n", bytes_text(memory), bytes_text(memory - total()))
                  : fmt::format("does not fit its {}: short by {}\n", bytes_text(memory), bytes_text(total() - memory));
      if (!*held && others_.empty()) text += "  nothing would fit on up to 4096 ranks\n";
      for (const planning::Found& other : others_)
        text += fmt::format("  would fit: --set {}  ({} on {})\n", other.changes(step_, layout_),
                            bytes_text(other.bytes + device().allowance(other.layout.ranks())),
                            plural(other.layout.ranks(), "rank"));
    }
  }
  for (const std::string& note : notes()) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace assay::estimate
