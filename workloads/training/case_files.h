// The files that a training case keeps in its run directory.
#pragma once

#include "harness/plan/case.h"
#include "workloads/data/training_stream.h"
#include "workloads/training/settings.h"
#include "workloads/training/trainer.h"

#include <filesystem>
#include <optional>
#include <string>

namespace assay::training {

// The identity of a case with these settings; without a seed it fits any seed.
CheckpointIdentity identity_of(const Settings& settings, const data::TrainingSet& set,
                               std::optional<std::uint64_t> seed);
// Why the case cannot continue from the checkpoint that `from` names, as far as its index and the sizes of its files
// show; nothing if it can.
std::optional<std::string> problem_of_from(const Settings& settings);

class CaseFiles {
 public:
  // `key` is the case's. Every rank constructs one.
  CaseFiles(Context& context, const Settings& settings, const data::TrainingSet& set, const std::string& key);

  // These are called by all ranks.
  // Restores the checkpoint of an earlier attempt; nothing if there is none.
  std::optional<CheckpointNotes> resume(Trainer& trainer, Transfer* transfer = nullptr) const;
  // Restores the checkpoint that the parameter `from` names; nothing if there is none.
  std::optional<CheckpointNotes> continue_from(Trainer& trainer) const;
  // Overwrites this case's checkpoint, checkpoints/MODEL-HASH.ckpt.
  Transfer save(Trainer& trainer, Json meta) const;
  // Reads back what save() wrote.
  void restore(Trainer& trainer, Transfer& transfer) const;
  // mllog/MODEL-HASH-seedN.log
  std::string log_name(std::uint64_t seed) const;

 private:
  std::optional<CheckpointNotes> restored(Trainer& trainer, const std::filesystem::path& file, const char* label,
                                          Transfer* transfer) const;

  Context& context_;
  std::string stem_;
  std::filesystem::path file_;
  std::filesystem::path from_;
  CheckpointIdentity identity_;
  bool saves_ = false;
};

// In B/s; without a value if nothing was moved.
Metric rate_metric(const char* name, const Transfer& transfer);
// Injects the fault corrupt-image if samples are image files: damages rank 0's first image of this seed.
void damage_image(const data::TrainingSet& set, std::uint64_t seed, Context& context);
// Adds the check `unusable_samples`, which names samples in files that cannot be used, unless the data are generated.
void check_unusable(const data::TrainingSet& set, Checks& checks);

}  // namespace assay::training
