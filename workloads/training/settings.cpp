#include "workloads/training/settings.h"

#include "harness/core/error.h"
#include "workloads/data/class_images.h"
#include "workloads/data/language.h"
#include "workloads/data/training_files.h"

#include <algorithm>

namespace assay::training {

namespace {

constexpr std::int64_t throughput_validation = 512;  // samples; not used

std::vector<std::int64_t> doubled(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = from; value <= to; value *= 2) values.push_back(value);
  return values;
}

// Divides the micro-batches of a step between the ranks, or each micro-batch if there are too few.
void divide_batch(Settings& settings) {
  const std::int64_t ranks = settings.ranks;
  const std::int64_t common = std::gcd(settings.accumulate, ranks);
  const std::int64_t pieces = ranks / common;
  if (settings.micro_batch % pieces != 0)
    throw UsageError(fmt::format("{}: micro_batch {} x accumulate {} cannot be divided between {} ranks",
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
  if (const auto problem = nn::problem_of_seq(input, settings.seq))
    throw UsageError(fmt::format("{}: {}", settings.model_name, *problem));
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
        fmt::format("mode=quality: evaluation is due every {} samples, which is not a multiple of the global "
                    "batch, {}",
                    recipe.quality->evaluate_every, settings.global_batch()));
  if (settings.path != generated_path && !recipe.quality->target.value)
    throw UsageError(
        fmt::format("mode=quality: the target of {} is relative to what generated data allows; data of your "
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
  options.evaluation = quality;
  options.layout = layout;
  return options;
}

Settings settings_from(const ModelFamily& family, const Params& params, int ranks) {
  Settings settings;
  settings.model_name = params.text("model");
  const std::int64_t image_size = params.number("image_size").value_or(0);
  settings.model = family.load(settings.model_name, image_size);
  settings.recipe = find_recipe(settings.model_name, family.name);
  settings.quality = is_quality(params);
  settings.precision = params.text("precision");
  settings.checkpointing = params.choice<nn::Checkpointing>("checkpointing");
  settings.strong = params.choice<Scaling>("scaling") == Scaling::strong || settings.quality;
  settings.threads = params.word("threads");
  settings.path = params.text("path");
  settings.save_every = params.integer("save_every");
  if (params.has("from") && params.text("from") != no_checkpoint) settings.from = params.text("from");
  settings.runs = params.integer("runs");
  settings.seed = static_cast<std::uint64_t>(params.integer("seed"));
  settings.ranks = ranks;
  settings.layout.dp = ranks;
  settings.layout.zero = static_cast<int>(params.number("zero").value_or(0));
  if (const auto problem = parallel::problem_of(settings.layout)) throw UsageError(*problem);

  const nn::InputSpec input = settings.model->input();
  const bool images = input.image_size > 0;
  settings.micro_batch = params.number("micro_batch").value_or(settings.recipe.micro_batch);
  settings.accumulate = params.number("accumulate").value_or(settings.recipe.accumulate);
  if (!images && params.word("seq") == no_seq)
    throw UsageError(fmt::format("seq={}: {} reads tokens", no_seq, settings.model_name));
  // The family's recipe may have longer sequences than this model can take.
  std::int64_t of_recipe = images ? 0 : settings.recipe.seq;
  if (const std::int64_t limit = input.max_seq(); limit > 0) of_recipe = std::min(of_recipe, limit);
  settings.seq = params.number("seq").value_or(of_recipe);
  check_shapes(settings, input, settings.seq > 0);
  if (settings.strong) divide_batch(settings);
  check_quality(settings);
  if (settings.quality && image_size > 0)
    throw UsageError(fmt::format("image_size={}: mode=quality takes the model's own", image_size));
  return settings;
}

Schema training_schema(const ModelFamily& family) {
  const auto recipe_count = [](const char* name, std::vector<std::string> words) {
    return axis::count(name, std::move(words)).runs({from_recipe}).range(1, 1e9);
  };
  Schema schema = {
      axis::text("model", family.default_model).doc("a model of configs/models, or a file like them"),
      axis::choice<Mode>("mode").runs({"throughput"}).doc("throughput times steps; quality times runs to a target"),
      axis::choice("precision", {"f32", "tf32", "bf16", "fp16", "fp8"})
          .runs({"f32"})
          .doc("of activations and products; masters are f32"),
      recipe_count("micro_batch", {from_recipe})
          .sweeps(doubled(1, 1 << 20))
          .doc("samples of one forward and backward pass of a rank"),
      recipe_count("accumulate", {from_recipe}).doc("micro-batches of an optimizer step of a rank"),
      recipe_count("seq", {from_recipe, no_seq})
          .sweeps(doubled(128, 1 << 24))
          .doc("tokens of a sequence; none: images have none"),
      axis::choice<nn::Checkpointing>("checkpointing")
          .runs({"none"})
          .doc("computed again in the backward pass, to save memory: selective: outputs of norms and activations; "
               "full: layers"),
      axis::integer("zero", 0).range(0, 1e9).omitted_by_default().doc(
          "what ranks divide (ZeRO): 1 optimizer state, 2 gradients too, 3 weights too; 0: nothing"),
      axis::choice<Scaling>("scaling").runs({"weak"}).doc(
          "over ranks: weak keeps the batch of a rank, strong the batch of all"),
      axis::count("threads", {"all", "core", "node", "cpus"})
          .runs({"all"})
          .range(1, 4096)
          .only(DeviceKind::cpu)
          .doc("per rank; a number stays the same at every world size"),
      axis::flag("deterministic")
          .omitted_by_default()
          .only(DeviceKind::cuda)
          .doc("equal machines have equal losses, to the bit: kernels by the libraries' heuristics, not by time, and "
               "one "
               "algorithm and protocol of NCCL"),
      axis::text("path", generated_path)
          .doc("data: generated, a folder of JPEGs by class or tar shards, or a token file"),
      axis::integer("save_every", 0).range(0, 1e9).doc("optimizer steps between checkpoints; 0: none"),
      axis::text("from", no_checkpoint)
          .omitted_by_default()
          .doc("a checkpoint to continue from, of any number of ranks with the same global batch"),
      axis::integer("runs", 5).range(1, 1e9).doc("seeded runs of quality mode"),
      axis::integer("seed", 0).range(0, 1e9).doc(
          "of weights and of the order of the data; run i of quality mode uses seed + i"),
  };
  if (family.images)
    schema.push_back(axis::count("image_size", {of_model})
                         .omitted_by_default()
                         .range(1, 1 << 14)
                         .sweeps({32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512})
                         .doc("pixels of height and width"));
  return schema;
}

Params default_params(const ModelFamily& family) {
  Params params;
  for (const ParamSpec& spec : training_schema(family)) params.set(spec.name, spec.defaults.front());
  return params;
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
