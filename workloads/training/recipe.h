// How a model is trained: optimizer, schedule, batch, data, evaluation and target, as configs/recipes/*.json say.
#pragma once

#include "workloads/nn/training_step.h"
#include "workloads/training/schedule.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace assay::training {

// What is generated where no data is given; as workloads/data names it. Vocabulary, classes and sizes are the model's.
struct GeneratedData {
  int chains = 4;             // of the language
  std::int64_t shortest = 0;  // masked language: of the sequences; 0: all are full
  int label_noise = 100;      // of images: of 1,000 labels that name another class
};

// What a quality run must reach. Language: a loss on the validation set, as a share above the loss of the exact Bayes
// predictor. Images: an accuracy, as a share of what label noise leaves possible. With data from files: the value
// itself.
struct Target {
  double loss_above_floor = 0;
  double accuracy_of_ceiling = 0;
  std::optional<double> value;
};

struct Recipe {
  std::string model;
  std::string source;       // the file
  nn::StepOptions options;  // optimizer, weight decay, clipping, label smoothing; the rest is the case's
  Schedule schedule;
  // Of quality mode; throughput takes them as defaults. Samples of one optimizer step: micro_batch * accumulate, over
  // all ranks together.
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  std::int64_t seq = 0;  // tokens of a sequence; 0 for images
  GeneratedData data;
  // Quality mode; absent in recipes that only throughput uses.
  struct Quality {
    Target target;
    std::int64_t evaluate_every = 0;      // samples trained on; a multiple of the global batch
    std::int64_t evaluation_samples = 0;  // of the validation set; a multiple of the micro-batch
    std::int64_t max_samples = 0;         // a run that has trained on so many has missed the target
  };
  std::optional<Quality> quality;

  std::int64_t global_batch() const { return micro_batch * accumulate; }
};

// Throws UsageError that lists every error of the file with its place and the nearest name.
Recipe read_recipe(const std::filesystem::path& file);

// The recipe of a model: configs/recipes/MODEL.json, else that of its family. Throws UsageError when there is neither.
Recipe find_recipe(const std::string& model, const std::string& family);

}  // namespace assay::training
