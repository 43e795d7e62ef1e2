// The memory of serving, as asked for by `assay estimate --serve`.
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/members.h"
#include "workloads/estimate/formula.h"
#include "workloads/estimate/sets.h"
#include "workloads/training/planned_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::estimate {

ServingEstimate::ServingEstimate(const Asked& asked, const AskedServing& serving)
    : model_(load_architecture(asked.model)), hardware_(asked.hardware) {
  const Schema schema = {
      axis::choice<planning::WeightFormat>("weights").runs({"as_stored"}).doc("how weights are held"),
      axis::integer("tp", 1).range(1, 1024).doc("ranks that share each layer")};
  Params params;
  for (const ParamSpec& spec : schema) params.set(spec.name, spec.defaults.front());
  set_params(schema, pairs_of(asked.sets), params);
  const auto cache = from_word<planning::CacheFormat>(serving.kv_dtype);
  if (!cache)
    throw UsageError(fmt::format("--kv-dtype {}: not a format of the cache{}", one_line(serving.kv_dtype),
                                 suggestion(serving.kv_dtype, all_words<planning::CacheFormat>())));
  constexpr std::int64_t usual_context = 4096;
  serving_ = {.context = serving.context > 0 ? serving.context : std::min(usual_context, model_.positions),
              .concurrency = serving.concurrency,
              .weights = params.choice<planning::WeightFormat>("weights"),
              .cache = *cache,
              .tp = params.integer("tp")};
  if (const auto problem = planning::problem_of(model_, serving_)) throw UsageError(*problem);
  memory_ = planning::memory_of(model_, serving_);
  if (!fits().value_or(true)) others_ = planning::nearest_that_fit(model_, serving_, device());
}

planning::Device ServingEstimate::device() const {
  planning::Device device;
  if (!hardware_) return device;
  device.bytes = static_cast<double>(hardware_->memory_bytes.value_or(0));
  if (hardware_->kind == "cpu") return device;
  device.alone = static_cast<double>(training::gpu_libraries_bytes);
  device.together = device.alone + static_cast<double>(training::gpu_communication_bytes);
  return device;
}

std::optional<bool> ServingEstimate::fits() const {
  if (!hardware_ || !hardware_->memory_bytes) return std::nullopt;
  return total() <= static_cast<double>(*hardware_->memory_bytes);
}

std::int64_t ServingEstimate::most() const {
  return planning::max_sequences(model_, serving_, device().left(serving_.tp));
}

ExitCode ServingEstimate::code() const {
  if (const auto held = fits()) return *held ? ExitCode::ok : ExitCode::failed;
  return hardware_ ? ExitCode::no_data : ExitCode::ok;
}

Json ServingEstimate::json() const {
  const auto whole = [](double bytes) { return static_cast<std::uint64_t>(std::ceil(bytes)); };
  const auto held = fits();
  Json would_fit = Json::array();
  for (const auto& [flags, other] : others_)
    would_fit.push_back(
        {{"flags", flags},
         {"total_bytes", whole(planning::memory_of(model_, other).total() + device().allowance(other.tp))}});
  return {{"schema", 1},
          {"model", model_.name},
          {"by", "formula"},
          {"architecture", model_.type},
          {"parameters", model_.parameters()},
          {"active_parameters", model_.active_parameters()},
          {"serve",
           {{"context", serving_.context},
            {"concurrency", serving_.concurrency},
            {"weights", word_of(serving_.weights)},
            {"kv_dtype", word_of(serving_.cache)},
            {"tp", serving_.tp}}},
          {"terms",
           {{"weights", whole(memory_.weights)},
            {"kv_cache", whole(memory_.cache)},
            {"workspace", whole(memory_.workspace)},
            {"allowance", whole(device().allowance(serving_.tp))}}},
          {"kv_cache_bytes_per_sequence", whole(memory_.cache / static_cast<double>(serving_.concurrency))},
          {"total_bytes", whole(total())},
          {"hardware",
           hardware_ ? Json{{"name", hardware_->name}, {"memory_bytes", json_of(hardware_->memory_bytes)}} : Json()},
          {"fits", json_of(held)},
          {"short_by_bytes",
           held ? Json(*held ? 0 : whole(total() - static_cast<double>(*hardware_->memory_bytes))) : Json()},
          {"max_sequences", held ? Json(most()) : Json()},
          {"would_fit", would_fit},
          {"notes", model_.notes}};
}

std::string ServingEstimate::text() const {
  std::string text = fmt::format(
      "{}: {} parameters\nserving, by formula: {} of {} tokens at once, weights {}, cache {}{}\n\n{:<14} {:>10}{}\n",
      one_line(model_.name), format_number(static_cast<double>(model_.parameters()), 0),
      plural(serving_.concurrency, "sequence"), serving_.context, word_of(serving_.weights), word_of(serving_.cache),
      serving_.tp > 1 ? fmt::format(", tp {}", serving_.tp) : "", "memory", format_bytes(total()),
      serving_.tp > 1 ? " on each rank" : "");
  for (const auto& [name, bytes] : {std::pair("weights", memory_.weights),
                                    {"kv_cache", memory_.cache},
                                    {"workspace", memory_.workspace},
                                    {"allowance", device().allowance(serving_.tp)}})
    if (bytes > 0) text += fmt::format("  {:<13}{:>10}\n", name, format_bytes(bytes));
  text += fmt::format("the cache of one sequence has {}\n",
                      format_bytes(memory_.cache / static_cast<double>(serving_.concurrency)));
  if (hardware_) {
    text += fmt::format("\n{}: ", hardware_->name);
    if (const auto held = fits()) {
      const auto memory = static_cast<double>(*hardware_->memory_bytes);
      text +=
          *held
              ? fmt::format("fits its {}, with {} to spare\n", format_bytes(memory), format_bytes(memory - total()))
              : fmt::format("does not fit its {}: short by {}\n", format_bytes(memory), format_bytes(total() - memory));
      if (*held) text += fmt::format("  at most --concurrency {} fits\n", most());
      for (const auto& [flags, other] : others_)
        text += fmt::format("  would fit: {}  ({})\n", flags,
                            format_bytes(planning::memory_of(model_, other).total() + device().allowance(other.tp)));
      if (!*held && others_.empty()) text += "  nothing would fit: not tp=64, not weights=int4\n";
    } else {
      text += "its sheet has no memory_bytes, so whether this fits cannot be said\n";
    }
  }
  for (const std::string& note : model_.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace assay::estimate
