// What a training case is asked for: its parameters, made definite by the model and its recipe.
#pragma once

#include "harness/plan/family.h"
#include "workloads/data/training_stream.h"
#include "workloads/nn/training_step.h"
#include "workloads/training/recipe.h"

#include <cstdint>
#include <memory>
#include <string>

namespace assay {

namespace nn {
constexpr auto words(Checkpointing) { return std::to_array<std::string_view>({"none", "full"}); }
}  // namespace nn

namespace training {

enum class Mode { throughput, quality };
constexpr auto words(Mode) { return std::to_array<std::string_view>({"throughput", "quality"}); }
enum class Scaling { weak, strong };
constexpr auto words(Scaling) { return std::to_array<std::string_view>({"weak", "strong"}); }
inline bool is_quality(const Params& params) { return params.choice<Mode>("mode") == Mode::quality; }

inline constexpr const char* from_recipe = "recipe";
inline constexpr const char* no_seq = "none";  // of image models
inline constexpr const char* generated_path = "generated";

// What a family of models brings: the rest of a training workload is the same for all.
struct ModelFamily {
  const char* name;
  const char* summary;
  const char* default_model;
  // The model of that name in configs/models, or of a file. Throws UsageError: unknown, not of this family, impossible
  // shapes; each with its place and the nearest name.
  std::unique_ptr<nn::Model> (*load)(const std::string& model);
};

struct Settings {
  bool quality = false;
  std::string model_name;  // as asked for
  std::shared_ptr<const nn::Model> model;
  Recipe recipe;
  std::string precision;
  nn::Checkpointing checkpointing = nn::Checkpointing::none;
  bool strong = false;
  std::string threads;
  std::string path;
  std::int64_t save_every = 0;
  std::int64_t runs = 1;
  std::uint64_t seed = 0;
  int ranks = 1;

  // Of one rank.
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  std::int64_t seq = 0;  // tokens of a sequence; 0 for images

  // Samples of one optimizer step, over all ranks.
  std::int64_t global_batch() const { return micro_batch * accumulate * ranks; }
  // Tokens or images of one sample: what throughput counts.
  std::int64_t items_per_sample() const { return seq > 0 ? seq : 1; }
  const char* item_unit() const { return seq > 0 ? "tokens/s" : "img/s"; }
  nn::StepOptions step_options() const;
};

// Throws UsageError where values do not go together: what, and the way out.
//
// Strong scaling keeps the global batch micro_batch x accumulate: ranks share the micro-batches of a step, and where
// there are too few of them, split each. Weak scaling gives every rank micro_batch x accumulate. A quality run keeps
// the global batch of one rank whatever the ranks: its scaling is strong.
Settings settings_from(const ModelFamily& family, const Params& params, int ranks);

// The parameters, in key order.
Schema training_schema(const ModelFamily& family);

// What the case trains on: generated, or the user's files. Throws UsageError for files that cannot serve.
std::shared_ptr<const data::TrainingSet> open_data(const Settings& settings);

}  // namespace training

}  // namespace assay
