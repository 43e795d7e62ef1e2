// What a person sees while a run goes: a live line on a terminal, plain lines elsewhere. All of it goes to stderr.
#pragma once

#include "harness/record/record.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace assay {

// A line at the foot of the terminal that is drawn anew, and lines that go above it. Without a terminal behind stderr
// there is no such line.
class LiveLine {
 public:
  LiveLine();
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool shown() const { return shown_; }
  // Cut at the width of the terminal.
  void draw(std::string text);
  // A line of its own, which stays.
  void note(const std::string& text);

 private:
  void clear();

  bool shown_;
};

class Progress {
 public:
  // `seconds` is the estimate for all `cases`.
  Progress(std::size_t cases, double seconds);
  virtual ~Progress() = default;

  virtual void begin(const std::string& key, int ranks, double estimated_seconds);
  virtual void phase(const std::string& name);
  // The case's outcome, with its first figure.
  virtual void finish(const Record& record);
  // A remark on a line of its own.
  virtual void note(const std::string& text);
  // Redraws the live line; to be called about once a second. Does nothing where stderr is no terminal.
  virtual void tick();

 private:
  LiveLine live_;
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

// "412 GFLOP/s", the first metric that has a value; else the reason or the status.
std::string headline(const Record& record);

}  // namespace assay
