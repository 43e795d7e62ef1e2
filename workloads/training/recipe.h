// How a model is trained: optimizer, schedule, batch, data, evaluation and target (configs/recipes/*.json).
#pragma once

#include "workloads/nn/training_step.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::training {

// Learning rate by step: linear warm-up, then constant, cosine, polynomial or stepwise.
enum class Decay { constant, cosine, polynomial, step };

struct Schedule {
  double base = 0;                // rate at the end of warm-up
  std::int64_t warmup_steps = 0;  // step s has the rate base * s / warmup_steps
  Decay decay = Decay::constant;
  std::int64_t total_steps = 0;  // cosine, polynomial: the last step of the decay
  double end_factor = 0;         // cosine, polynomial: fraction of base at the end and after
  double power = 1;              // polynomial: base * ((1 - p)^power (1 - end_factor) + end_factor), p the progress
  std::vector<std::int64_t> milestones = {};  // step: after each of these steps the rate is multiplied by `factor`
  double factor = 0.1;
};

// The rate of optimizer step `step`, counted from 1.
// Cosine: base * (end_factor + (1 - end_factor) (1 + cos(pi p)) / 2), p from 0 after warm-up to 1 at total_steps
// (Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts).
double learning_rate(const Schedule& schedule, std::int64_t step);

// The same for steps that are only timed: the base rate, after a linear warm-up over ten steps.
double timing_rate(const Schedule& schedule, std::int64_t step);

// Parameters of generated data, named as in workloads/data. Vocabulary, classes and sizes are the model's.
struct GeneratedData {
  int chains = 4;             // hidden chains of the language
  std::int64_t shortest = 0;  // masked language: shortest sequence; 0: all have full length
  int label_noise = 100;      // images: labels per 1,000 that name another class
};

// The target of a quality run. Language: a loss on the validation set, as a fraction above that of the exact Bayes
// predictor. Images: an accuracy, as a fraction of what label noise leaves possible. Data from files: the value itself.
struct Target {
  double loss_above_floor = 0;
  double accuracy_of_ceiling = 0;
  std::optional<double> value;
};

struct Recipe {
  std::string model;
  std::string source;       // the file
  nn::StepOptions options;  // optimizer, weight decay, clipping, label smoothing; the case sets the rest
  Schedule schedule;
  // Used in quality mode; throughput mode has these defaults. An optimizer step has micro_batch * accumulate samples
  // over all ranks.
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  std::int64_t seq = 0;  // tokens per sequence; 0 for images
  GeneratedData data;
  // Settings of quality mode; absent in recipes that are only for throughput.
  struct Quality {
    Target target;
    std::int64_t evaluate_every = 0;      // in samples; a multiple of the global batch
    std::int64_t evaluation_samples = 0;  // samples of the validation set; a multiple of the micro-batch
    std::int64_t max_samples = 0;         // after this many, a run has missed the target
  };
  std::optional<Quality> quality;

  std::int64_t global_batch() const { return micro_batch * accumulate; }
};

// Throws UsageError that lists all errors of the file, with place and nearest name.
Recipe read_recipe(const std::filesystem::path& file);

// The recipe of a model, by its name or file: configs/recipes/MODEL.json, else that of its family. Throws UsageError if
// neither exists.
Recipe find_recipe(const std::string& name_or_file, const std::string& family);

}  // namespace assay::training
