// A model in training on this rank: its step, its data, and the operations common to both modes.
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

// Seconds of a step on this rank, by part.
struct StepParts {
  double data_wait = 0;
  double forward = 0;
  double backward = 0;
  double exposed_communication = 0;
  double optimizer = 0;

  StepParts& operator+=(const StepParts& other);
  double sum() const { return data_wait + forward + backward + exposed_communication + optimizer; }
  // The mean over `steps`, by name.
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
  // This rank's micro-batches in the order of the set, for the test against the floor.
  struct Batch {
    std::int64_t first = 0;  // index of its first sample in the set
    std::int64_t samples = 0;
    double loss = 0;  // mean
  };
  std::vector<Batch> batches;
};

class Trainer {
 public:
  // Chooses threads and plans the step. The arguments must outlive the trainer. Throws UsageError, with the reason, if
  // the device lacks an op.
  Trainer(Device& device, Communicator& comm, const Settings& settings);

  const nn::MemoryPlan& memory() const { return step_->memory(); }
  // Bytes of samples made ahead of the step; 0 before open().
  std::int64_t prefetch_bytes() const { return stream_ ? stream_->prefetch_bytes() : 0; }
  // Throws Error with the planned bytes by term if they do not fit.
  void allocate();
  // See nn::TrainingStep.
  void connect() { step_->connect(); }
  // Runs steps on dummy inputs at rate 0, so that pages, kernels and graphs of the first steps exist; in mode quality
  // also those of the first evaluation.
  void warm_up();
  // Weights by `seed`, everything else as before the first step.
  void initialise(std::uint64_t seed);
  // Starts the data where it is after that many steps, in the order of `seed`; workers begin to make batches.
  void open(std::shared_ptr<const data::TrainingSet> data, std::uint64_t seed, std::int64_t after = 0);
  // One optimizer step. Throws Error that names step and first tensor if a value is not finite.
  Step step(double learning_rate, const nn::Exchange& exchange = {});
  // Evaluates the model; only in mode quality, whose steps are planned with an evaluation.
  Evaluation evaluate();
  // The fault slow-rank: from now on steps take twice as long on this rank, not counting waits for other ranks.
  void slow_down() { slow_ = true; }
  // The fault slow-loader: from now on every batch comes late, by as long as the rest of a step takes.
  void slow_loader() { late_data_ = true; }
  // The fault stall: from now on every twentieth step stops for ten times as long as the step before took.
  void stall() { stalls_ = true; }
  // Injects a fault: flips the upper mantissa bit of the part's first element, which stays finite.
  void flip_bit(const nn::StatePart& part);
  // A part of the state that every rank holds whole.
  const nn::StatePart& common_weight(const std::vector<nn::StatePart>& state) const;
  // Optimizer steps since initialise().
  std::int64_t steps() const { return steps_; }

  // See write_checkpoint() and read_checkpoint(). `meta` is for the caller. After restore(), open() must follow.
  Transfer save(const std::filesystem::path& file, const CheckpointIdentity& identity, Json meta);
  CheckpointNotes restore(const std::filesystem::path& file, const CheckpointIdentity& identity,
                          Transfer* transfer = nullptr);

  // How many ranks have values that differ from rank 0's in any bit, of the parts that all ranks hold.
  int ranks_that_differ(const std::vector<nn::StatePart>& parts);
  nn::TrainingStep& training_step() { return *step_; }
  // Fills in the record: implementation, isa, threads, libraries, data, ...
  void describe(Context& context, const data::TrainingSet& set) const;
  // On a CPU: binds the team that computes, and its size; no effect and 0 on a GPU.
  void use_threads() const {
    if (team_) team_->use();
  }
  int threads() const { return team_ ? team_->size() : 0; }

 private:
  // Fills in the next batch; returns the seconds needed.
  double fill();
  bool held_by_all(const nn::StatePart& part) const;
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
  bool slow_ = false;
  bool late_data_ = false;
  bool stalls_ = false;
  double last_seconds_ = 0;  // time of the last step, without its data
  bool filled_ = false;      // the next step's batch is already sent
};

}  // namespace assay::training
