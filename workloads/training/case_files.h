// The files that one training case keeps in its run's directory.
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
  // `key` is the case's. Every rank makes its own.
  CaseFiles(const Context& context, const Settings& settings, const std::string& key);

  // checkpoints/MODEL-HASH.ckpt: one a case, replaced by the next.
  const std::filesystem::path& file() const { return file_; }
  const CheckpointIdentity& identity() const { return identity_; }
  // The checkpoint that an earlier attempt left, where the case saves any; the same answer on every rank.
  std::optional<std::filesystem::path> to_resume() const;
  // Asks the kernel to forget the file's pages, so that reading it asks the disk.
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

// The fault corrupt-image, where it was asked for and samples are images from files: rank 0's first image of this seed.
void damage_image(const data::TrainingSet& set, std::uint64_t seed, Context& context);
// Samples from files that could not be used: the check `unusable_samples`, with their names. None for generated data.
void check_unusable(const data::TrainingSet& set, Checks& checks);

}  // namespace assay::training
