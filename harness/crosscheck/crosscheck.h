// Our figures beside those of other tools, in alternation on this machine: ratios and what they mean.
#pragma once

#include "harness/crosscheck/result.h"
#include "harness/crosscheck/tools.h"
#include "harness/device/device.h"
#include "harness/record/run_dir.h"

#include <filesystem>
#include <functional>
#include <string>

namespace assay::crosscheck {

inline constexpr int min_pairs = 6;  // fewer have no 95 % interval

struct Request {
  int pairs = 9;
  double tolerance = 0.02;
  Sizes sizes;
};

// What a crosscheck asks of this machine. Tests make it up.
struct Machine {
  std::function<std::string(const std::string& name)> find;  // the path of a program; empty: there is none
  std::function<CudaProbe()> gpus;
  Printed printed;
  std::function<RunData(const std::filesystem::path& plan)> run;  // by this program. Throws Error
};
// This one. A program that takes longer than 10 minutes is ended.
Machine this_machine();

// Throws Error if a tool or a run of ours failed.
Result compare_with_tools(const Request& request, const Machine& machine);

}  // namespace assay::crosscheck
