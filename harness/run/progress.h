// Progress of a run on stderr: a live line on a terminal, and plain lines.
#pragma once

#include "harness/core/live_line.h"
#include "harness/record/record.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace assay {

class Progress {
 public:
  Progress();
  virtual ~Progress() = default;

  // `seconds` is the estimate for all `cases`.
  void start(std::size_t cases, double seconds);
  virtual void begin(const std::string& key, int ranks, double estimated_seconds);
  virtual void phase(const std::string& name);
  // The case's outcome, with its first metric.
  virtual void finish(const Record& record);
  // A line that stays.
  virtual void note(const std::string& text);
  // Redraws the live line; to be called about once per second.
  virtual void tick();

 private:
  LiveLine live_;
  std::size_t cases_ = 0;
  std::size_t done_ = 0;
  double all_seconds_ = 0;  // estimated, as are the next two
  double left_seconds_ = 0;
  double case_seconds_ = 0;
  std::string key_;
  std::string phase_;
  std::string last_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point case_started_;
};

// "412 GFLOP/s", the first metric that has a value; else the reason or the status.
std::string headline(const Record& record);

}  // namespace assay
