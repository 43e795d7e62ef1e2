// The files that a training case keeps in its run directory.
#pragma once

#include "harness/plan/case.h"
#include "workloads/data/training_stream.h"
#include "workloads/training/checkpoint.h"
#include "workloads/training/settings.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::training {

class CaseFiles {
 public:
  // `key` is the case's. Every rank constructs one.
  CaseFiles(const Context& context, const Settings& settings, const std::string& key);

  // checkpoints/MODEL-HASH.ckpt: one per case, overwritten by the next.
  const std::filesystem::path& file() const { return file_; }
  const CheckpointIdentity& identity() const { return identity_; }
  // The checkpoint of an earlier attempt, if the case saves any; the same on every rank.
  std::optional<std::filesystem::path> to_resume() const;
  // Asks the kernel to drop the file from the page cache, so that the next read goes to the disk.
  void evict() const;
  // mllog/MODEL-HASH-seedN.log
  std::string log_name(std::uint64_t seed) const;

 private:
  Communicator& comm_;
  std::string stem_;
  std::filesystem::path file_;
  CheckpointIdentity identity_;
  bool saves_ = false;
};

// Injects the fault corrupt-image if samples are image files: damages rank 0's first image of this seed.
void damage_image(const data::TrainingSet& set, std::uint64_t seed, Context& context);
// The check `unusable_samples`: names samples in files that cannot be used. Not made for generated data.
void check_unusable(const data::TrainingSet& set, Checks& checks);

}  // namespace assay::training
