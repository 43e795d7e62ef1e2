// The MLLOG file of a quality run, in the order that the rules require (configs/mllog/rules.yaml).
#pragma once

#include "harness/plan/case.h"
#include "workloads/training/mllog.h"
#include "workloads/training/settings.h"
#include "workloads/training/target.h"

#include <string>

namespace assay::training {

// Rank 0 writes; other ranks do nothing.
class RunLog {
 public:
  RunLog(const Context& context, const std::string& name);

  // The run's parameters, then init_start.
  void begin(const Context& context, const Settings& settings, const Goal& goal, std::uint64_t seed);
  void run_start();  // and init_stop: nothing happens between them
  void block_start(std::int64_t samples, std::int64_t count);
  void block_stop(std::int64_t samples);
  void eval_start(std::int64_t samples);
  void eval_stop(std::int64_t samples, double value);
  void run_stop(bool reached, std::int64_t samples);

  // The whole text, for a checkpoint; and back: rewrites the file with it.
  const std::string& text() const { return text_; }
  void restore(const std::string& text);

 private:
  std::function<void(std::string_view, bool)> write_;
  std::string text_;
  MlLog log_;
};

}  // namespace assay::training
