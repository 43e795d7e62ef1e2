// What `assay watch` prints: the end of a job, and where it is now.
#pragma once

#include "harness/sensors/job_sensor.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/steps.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::watch {

struct Shown {
  std::string name = {};
  double seconds = 0;  // that were watched
  JobUse use = {};
  std::optional<JobSteps> steps = {};
  std::string why_no_steps = {};         // if there are none
  bool cuda = false, gpu_parts = false;  // whether parts are times of the GPUs
  std::vector<Diagnosis> found = {};
  std::vector<std::string> sound = {};  // not_the_cause()
  std::string traced = {};              // lines about recorded steps
  std::optional<double> items = {};     // per step, of all ranks
  std::string unit = "items";
  std::optional<double> flops = {};       // per step, of all ranks
  std::optional<double> mfu = {};         // of the sheet's peak of its GPUs
  std::vector<std::string> remarks = {};  // hooks that are absent, with the reason
  std::string run = {};                   // where the record is; empty: it could not be written
};

// A screen of at most 100 columns, ended by a line break.
std::string end_text(const Shown& shown);
// What limits it, a line and its change each, and what does not.
std::string findings_text(const std::vector<Diagnosis>& found, const std::vector<std::string>& sound);
// A bar of named parts, in order, of a step of so many seconds: "|data 19%|forward 71%   |".
std::string bar(const std::vector<std::pair<std::string_view, double>>& parts, double step);
// The bars alone: of a step, and of each rank if there are several.
std::string bars(const JobSteps& steps);
// One line for a rank of a job that hangs, or is asked: its step, its last collective, its stack.
struct Standing {
  int rank = 0;
  std::uint64_t steps = 0, entered = 0;
  std::string collective, stack;
};
std::vector<std::string> standing_lines(const std::vector<Standing>& ranks);

}  // namespace assay::watch
