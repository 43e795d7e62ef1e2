// Trials whose time passes only while they run and are waited for.
#pragma once

#include "harness/run/trial.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace assay::gate {

class MadeUpClock : public Trials {
 public:
  void wait(Clock::time_point until) override { now_ = std::max(now_, until); }
  Clock::time_point now() const override { return now_; }

 protected:
  void pass(double seconds) {
    now_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

 private:
  Clock::time_point now_ = {};
};

// Returns the result of a trial that left one record.
inline TrialResult finished_with(Record record, double seconds) {
  TrialResult result{.complete = true, .code = 0, .seconds = seconds};
  result.run.emplace().run = {{"schema", 2}, {"finished", "2026-01-01T00:00:00Z"}};
  result.run->records.push_back(std::move(record));
  result.run->lines.push_back(1);
  return result;
}

}  // namespace assay::gate
