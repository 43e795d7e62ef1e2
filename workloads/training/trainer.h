// A model in training on this rank: its step, its data, and what both modes do with them.
#pragma once

#include "harness/device/cpu/team.h"
#include "harness/plan/case.h"
#include "workloads/training/checkpoint.h"
#include "workloads/training/settings.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::training {

// Seconds of one step of this rank by part.
struct StepParts {
  double data_wait = 0;
  double forward = 0;
  double backward = 0;
  double exposed_communication = 0;
  double optimizer = 0;

  StepParts& operator+=(const StepParts& other);
  double sum() const { return data_wait + forward + backward + exposed_communication + optimizer; }
  // Of the mean step of `steps`, by name.
  std::vector<std::pair<std::string, double>> spans(std::int64_t steps) const;
};

struct Step {
  nn::StepResult result;
  StepParts parts;
};

// Sums over all ranks and the whole validation set.
struct Evaluation {
  double loss = 0;  // mean of the valid targets, in nats
  double accuracy = 0;
  std::int64_t samples = 0;
  // Of each micro-batch, in the order of the set, for the test against the floor; by batch, of rank 0 alone.
  struct Batch {
    std::int64_t first = 0;  // place of its first sample in the set
    std::int64_t samples = 0;
    double loss = 0;  // mean
  };
  std::vector<Batch> batches;
};

class Trainer {
 public:
  // Chooses threads and plans the step; everything outlives the trainer. Throws UsageError where the device lacks an
  // op, with its reason.
  Trainer(Device& device, Communicator& comm, const Settings& settings);

  const nn::MemoryPlan& memory() const { return step_->memory(); }
  // Of samples made ahead of the step; 0 before open().
  std::int64_t prefetch_bytes() const { return stream_ ? stream_->prefetch_bytes() : 0; }
  // Throws Error with the planned bytes by term where they do not fit.
  void allocate();
  // Steps over inputs that are no data, at rate 0: what is made at the first steps (pages, kernels, a graph) is made
  // then; with `evaluation`, what is made at the first evaluation too.
  void warm_up(bool evaluation);
  // Weights of `seed`, everything else as before the first step.
  void initialise(std::uint64_t seed);
  // The data from its start, in the order of `seed`; the first batches are made from here on.
  void open(std::shared_ptr<const data::TrainingSet> data, std::uint64_t seed);
  // One optimizer step. Throws Error naming step and first tensor when a value is not finite.
  Step step(double learning_rate, bool reduce = true);
  Evaluation evaluate();
  // The fault slow-rank: from here on every step takes this rank twice as long, but for what it waits for others.
  void slow_down() { slow_ = true; }
  // Flips the upper bit of the mantissa of the part's first element, as the faults ask for: it stays finite.
  void flip_bit(const nn::StatePart& part);
  // Optimizer steps taken since initialise().
  std::int64_t steps() const { return steps_; }

  // Rank 0 writes; all ranks wait. `meta` is the mode's own.
  Transfer save(const std::filesystem::path& file, const CheckpointIdentity& identity, Json meta);
  // Every rank reads. Returns meta; reopen() then goes on with the data where it was.
  Json restore(const std::filesystem::path& file, const CheckpointIdentity& identity, Transfer* transfer = nullptr);
  void reopen(std::shared_ptr<const data::TrainingSet> data, std::uint64_t seed);

  // How many ranks' values of these are not those of rank 0, to the bit.
  int ranks_that_differ(const std::vector<nn::StatePart>& parts);
  nn::TrainingStep& training_step() { return *step_; }
  // For the record: implementation, isa, threads, libraries, data, ...
  void describe(Context& context, const data::TrainingSet& set) const;
  // On a CPU: the team that computes, and its size; a GPU has none.
  void use_threads() const {
    if (team_) team_->use();
  }
  int threads() const { return team_ ? team_->size() : 0; }

 private:
  // Writes the batch to come; seconds it took.
  double fill();
  // Threads that make samples.
  int workers() const;
  void refuse_non_finite(const nn::StepResult& result);

  const Settings& settings_;
  Device& device_;
  Communicator& comm_;
  std::optional<cpu::Team> team_;
  std::shared_ptr<ops::Backend> backend_;
  std::shared_ptr<const data::TrainingSet> data_;
  std::unique_ptr<nn::TrainingStep> step_;
  std::unique_ptr<data::TrainingStream> stream_;
  std::unique_ptr<data::TrainingStream> validation_;
  std::int64_t steps_ = 0;
  std::int64_t position_ = 0;  // of the data, as the checkpoint said
  bool slow_ = false;
  bool filled_ = false;  // the next step's batch is on its way already
};

}  // namespace assay::training
