// The settings of a training case: its parameters, completed by the model and its recipe.
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
constexpr auto words(Checkpointing) { return std::to_array<std::string_view>({"none", "selective", "full"}); }
}  // namespace nn

namespace training {

enum class Mode { throughput, quality };
constexpr auto words(Mode) { return std::to_array<std::string_view>({"throughput", "quality"}); }
enum class Scaling { weak, strong };
constexpr auto words(Scaling) { return std::to_array<std::string_view>({"weak", "strong"}); }
inline bool is_quality(const Params& params) { return params.choice<Mode>("mode") == Mode::quality; }

inline constexpr const char* from_recipe = "recipe";
inline constexpr const char* of_model = "model";
inline constexpr const char* no_seq = "none";  // sequence length of image models
inline constexpr const char* generated_path = "generated";
inline constexpr const char* no_checkpoint = "none";

// Everything that differs between families of models.
struct ModelFamily {
  const char* name;
  const char* summary;
  const char* default_model;
  // The model of that name in configs/models, or in a file. Throws UsageError, with place and nearest name, if it is
  // unknown, of another family, or has impossible shapes. `image_size` replaces the model's own, if it is above 0.
  std::unique_ptr<nn::Model> (*load)(const std::string& model, std::int64_t image_size);
  bool images = false;  // else tokens
};

struct Settings {
  bool quality = false;
  std::string model_name;  // as requested
  std::shared_ptr<const nn::Model> model;
  Recipe recipe;
  std::string precision;
  nn::Checkpointing checkpointing = nn::Checkpointing::none;
  bool strong = false;
  std::string threads;
  std::string path;
  std::int64_t save_every = 0;
  std::string from;  // the checkpoint to continue from; empty: none
  std::int64_t runs = 1;
  std::uint64_t seed = 0;
  int ranks = 1;
  parallel::Layout layout;

  // Per rank.
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  std::int64_t seq = 0;  // tokens per sequence; 0 for images

  // Samples per optimizer step, over all ranks.
  std::int64_t global_batch() const { return micro_batch * accumulate * ranks; }
  // Tokens or images per sample: what throughput counts.
  std::int64_t items_per_sample() const { return seq > 0 ? seq : 1; }
  const char* item_unit() const { return seq > 0 ? "tokens/s" : "img/s"; }
  nn::StepOptions step_options() const;
};

// Throws UsageError if values do not go together, with a way out.
//
// Strong scaling keeps the global batch of micro_batch x accumulate: ranks divide the micro-batches of a step, and if
// there are too few, split each. Weak scaling gives every rank micro_batch x accumulate. A quality run always scales
// strongly, so that its global batch does not depend on the ranks.
Settings settings_from(const ModelFamily& family, const Params& params, int ranks);

// The axes, in key order.
Schema training_schema(const ModelFamily& family);
// The first default of each.
Params default_params(const ModelFamily& family);

// The case's data: generated, or the user's files. Throws UsageError for unsuitable files.
std::shared_ptr<const data::TrainingSet> open_data(const Settings& settings);

}  // namespace training

}  // namespace assay
