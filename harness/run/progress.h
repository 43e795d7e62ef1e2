// What a person sees while a run goes: a live line on a terminal, plain lines elsewhere. All of it goes to stderr.
#pragma once

#include "harness/record/record.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace assay {

class Progress {
 public:
  // `seconds` is the estimate for all `cases`.
  Progress(std::size_t cases, double seconds);
  virtual ~Progress();

  virtual void begin(const std::string& key, int ranks, double estimated_seconds);
  virtual void phase(const std::string& name);
  // The case's outcome, with its first figure.
  virtual void finish(const Record& record);
  // A remark on a line of its own.
  virtual void note(const std::string& text);
  // Redraws the live line; to be called about once a second. Does nothing where stderr is no terminal.
  virtual void tick();

 private:
  void clear_live();

  bool live_;
  std::size_t cases_;
  std::size_t done_ = 0;
  double left_seconds_;
  double case_seconds_ = 0;
  std::string key_;
  std::string phase_;
  std::string last_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point case_started_;
};

// Columns of the terminal behind stderr, 80 where there is none.
std::size_t terminal_width();

// "412 GFLOP/s", the first metric that has a value; else the reason or the status.
std::string headline(const Record& record);

}  // namespace assay
