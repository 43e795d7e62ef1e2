// What a quality run tells its MLLOG file, in the order that the rules ask for (configs/mllog/rules.yaml).
#pragma once

#include "harness/plan/case.h"
#include "workloads/training/mllog.h"
#include "workloads/training/settings.h"
#include "workloads/training/target.h"

#include <string>

namespace assay::training {

// Rank 0 writes; on the other ranks nothing happens.
class RunLog {
 public:
  RunLog(const Context& context, const std::string& name);

  // The run's facts, then init_start.
  void begin(const Context& context, const Settings& settings, const Goal& goal, std::uint64_t seed);
  void run_start();  // init_stop, too: nothing lies between them
  void block_start(std::int64_t samples, std::int64_t count);
  void block_stop(std::int64_t samples);
  void eval_start(std::int64_t samples);
  void eval_stop(std::int64_t samples, double value);
  void run_stop(bool reached, std::int64_t samples);

  // All that was written, for a checkpoint, and its return: the file is written anew with it.
  const std::string& text() const { return text_; }
  void restore(const std::string& text);

 private:
  std::function<void(std::string_view, bool)> write_;
  std::string text_;
  MlLog log_;
};

}  // namespace assay::training
