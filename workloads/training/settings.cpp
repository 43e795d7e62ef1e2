#include "workloads/training/settings.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "workloads/data/class_images.h"
#include "workloads/data/language.h"
#include "workloads/data/training_files.h"

#include <filesystem>
#include <numeric>

namespace assay::training {

namespace {

constexpr std::int64_t throughput_validation = 512;  // samples that nobody looks at

std::string stem_of(const std::string& model) { return std::filesystem::path(model).stem().string(); }

// A count as it is written: "2", "all"; empty where it is absent.
std::string word_of(const Params& params, const char* name) {
  for (const auto& [key, value] : params.items())
    if (key == name) return to_string(value);
  return {};
}

// A count, or what the recipe says.
std::int64_t count_or(const Params& params, const char* name, std::int64_t recipe) {
  for (const auto& [key, value] : params.items())
    if (key == name)
      if (const auto* count = std::get_if<std::int64_t>(&value)) return *count;
  return recipe;
}

// One rank's share of the micro-batches of a step, in `accumulate`, or of each of them, in `micro_batch`.
void share_batch(Settings& settings) {
  const std::int64_t ranks = settings.ranks;
  const std::int64_t common = std::gcd(settings.accumulate, ranks);
  const std::int64_t pieces = ranks / common;
  if (settings.micro_batch % pieces != 0)
    throw UsageError(fmt::format("{}: micro_batch {} x accumulate {} cannot be shared by {} ranks: they must divide it",
                                 settings.quality ? "mode=quality keeps the global batch" : "scaling=strong",
                                 settings.micro_batch, settings.accumulate, ranks));
  settings.accumulate /= common;
  settings.micro_batch /= pieces;
}

void check_shapes(const Settings& settings, const nn::InputSpec& input, bool seq_given) {
  if (input.image_size > 0) {
    if (seq_given) throw UsageError(fmt::format("seq={}: {} reads images", settings.seq, settings.model_name));
    return;
  }
  if (settings.seq < 1) throw UsageError(fmt::format("{}: its recipe has no batch/seq", settings.recipe.source));
  if (input.positions > 0 && settings.seq > input.positions)
    throw UsageError(fmt::format("seq={}: {} has {} positions", settings.seq, settings.model_name, input.positions));
}

void check_quality(const Settings& settings) {
  if (!settings.quality) return;
  const Recipe& recipe = settings.recipe;
  if (!recipe.quality)
    throw UsageError(
        fmt::format("mode=quality: {} sets no target; models that have one: gpt2-tiny, llama-tiny, "
                    "resnet-tiny, or a recipe of your own",
                    recipe.source));
  if (recipe.quality->evaluate_every % settings.global_batch() != 0)
    throw UsageError(
        fmt::format("mode=quality: evaluation is due every {} samples, which is no whole number of global "
                    "batches of {}",
                    recipe.quality->evaluate_every, settings.global_batch()));
  if (settings.path != generated_path && !recipe.quality->target.value)
    throw UsageError(
        fmt::format("mode=quality: the target of {} is a share of what generated data allows; data of your "
                    "own needs \"target\": {{\"value\": ...}}",
                    recipe.source));
}

}  // namespace

nn::StepOptions Settings::step_options() const {
  nn::StepOptions options = recipe.options;
  options.precision = nn::precision_from(precision);
  options.batch = {micro_batch, seq};
  options.accumulate = accumulate;
  options.checkpointing = checkpointing;
  return options;
}

Settings settings_from(const ModelFamily& family, const Params& params, int ranks) {
  Settings settings;
  settings.model_name = params.text("model");
  settings.model = family.load(settings.model_name);
  settings.recipe = find_recipe(stem_of(settings.model_name), family.name);
  settings.quality = params.text("mode") == "quality";
  settings.precision = params.text("precision");
  settings.checkpointing = params.text("checkpointing") == "full" ? nn::Checkpointing::full : nn::Checkpointing::none;
  settings.strong = params.text("scaling") == "strong" || settings.quality;
  settings.threads = word_of(params, "threads");
  settings.path = params.text("path");
  settings.save_every = params.integer("save_every");
  settings.runs = params.integer("runs");
  settings.seed = static_cast<std::uint64_t>(params.integer("seed"));
  settings.ranks = ranks;

  const nn::InputSpec input = settings.model->input();
  const bool images = input.image_size > 0;
  settings.micro_batch = count_or(params, "micro_batch", settings.recipe.micro_batch);
  settings.accumulate = count_or(params, "accumulate", settings.recipe.accumulate);
  if (!images && word_of(params, "seq") == no_seq)
    throw UsageError(fmt::format("seq={}: {} reads tokens", no_seq, settings.model_name));
  settings.seq = count_or(params, "seq", images ? 0 : settings.recipe.seq);
  check_shapes(settings, input, settings.seq > 0);
  if (settings.strong) share_batch(settings);
  check_quality(settings);
  return settings;
}

Schema training_schema(const ModelFamily& family) {
  using Values = std::vector<ParamValue>;
  const auto count = [](const char* name, const char* help) {
    return ParamSpec{name, ParamType::count, Values{std::string(from_recipe)}, {from_recipe}, 1.0, 1e9, help, {}};
  };
  const auto integer = [](const char* name, std::int64_t otherwise, double least, const char* help) {
    return ParamSpec{name, ParamType::integer, Values{otherwise}, {}, least, 1e9, help, {}};
  };
  ParamSpec seq = count("seq", "tokens of a sequence; none: images have none");
  seq.allowed.push_back(no_seq);
  return {
      {"model",
       ParamType::text,
       Values{std::string(family.default_model)},
       {},
       {},
       {},
       "a model of configs/models, or a file like them",
       {}},
      choice("mode", {"throughput", "quality"}, {"throughput"},
             "throughput times steps; quality times runs to a target"),
      choice("precision", {"f32", "tf32", "bf16", "fp16", "fp8"}, {"f32"},
             "of activations and products; masters are f32"),
      count("micro_batch", "samples of one forward and backward pass of a rank"),
      count("accumulate", "micro-batches of an optimizer step of a rank"),
      seq,
      choice("checkpointing", {"none", "full"}, {"none"},
             "full: layers are computed again in the backward pass, to save memory"),
      choice("scaling", {"weak", "strong"}, {"weak"},
             "over ranks: weak keeps the batch of a rank, strong the batch of all"),
      {"threads",
       ParamType::count,
       Values{std::string("all")},
       {"all", "core", "node", "cpus"},
       1.0,
       4096.0,
       "of a rank; a number stays the same at every world size",
       {DeviceKind::cpu}},
      {"path",
       ParamType::text,
       Values{std::string(generated_path)},
       {},
       {},
       {},
       "data: generated, a folder of JPEGs by class or tar shards, or a token file",
       {}},
      integer("save_every", 0, 0, "optimizer steps between checkpoints; 0: none"),
      integer("runs", 5, 1, "seeded runs of quality mode"),
      integer("seed", 0, 0, "of weights and of the order of the data; run i of quality mode takes seed + i"),
  };
}

std::shared_ptr<const data::TrainingSet> open_data(const Settings& settings) {
  const nn::InputSpec input = settings.model->input();
  const GeneratedData& data = settings.recipe.data;
  const std::int64_t validation =
      settings.recipe.quality ? settings.recipe.quality->evaluation_samples : throughput_validation;
  if (input.image_size > 0) {
    const int size = static_cast<int>(input.image_size);
    if (settings.path != generated_path) return data::open_training_images(settings.path, size, input.classes);
    return data::make_class_images({.classes = static_cast<int>(input.classes),
                                    .size = size,
                                    .label_noise = data.label_noise,
                                    .validation = validation});
  }
  if (settings.path != generated_path)
    return data::open_training_tokens(settings.path, settings.seq, input.classes, input.masked);
  return data::make_language({.vocabulary = input.classes,
                              .chains = data.chains,
                              .seq = settings.seq,
                              .masked = input.masked,
                              .shortest = input.masked ? std::min(data.shortest, settings.seq) : 0,
                              .validation = validation});
}

}  // namespace assay::training
