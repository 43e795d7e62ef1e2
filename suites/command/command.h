// A command as a case: run several times, with the figure that it prints or its time.
#pragma once

#include "harness/plan/family.h"
#include "harness/record/metric.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay {

Family command_family();

namespace command {

// What a shell is given for these parameters: the variables, then the command.
std::string script_of(const Params& params);
// Why the text of `env` is not NAME=VALUE words; empty if it is.
std::string problem_of_variables(const std::string& text);

// What the processes of all runs used over time, so many points that a case of thousands of runs stays small.
class SeriesOfRuns {
 public:
  static constexpr std::size_t max_points = 4096;  // of a series; from then on the series of whole runs are left out
  void add(const std::map<std::string, Series>& run);
  // Which runs have series, for a record's flags; empty if all have.
  std::string cut() const;
  std::map<std::string, Series> take() { return std::move(all_); }

 private:
  std::map<std::string, Series> all_;
  std::int64_t runs_ = 0, left_out_ = 0;
  bool full_ = false;
};

// The last `count` lines of an output as a terminal shows it, without empty ones at its end.
std::vector<std::string> shown_lines(const std::string& output, int count);

}  // namespace command

}  // namespace assay
