// The tools beside which our figures are put, and how each side's figures are measured.
#pragma once

#include "harness/json/json.h"
#include "harness/record/record.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::crosscheck {

inline constexpr std::int64_t size_factor = 16;  // between sizes

struct Sizes {
  std::int64_t from = 0, to = 0;
  std::vector<std::int64_t> all;  // from `from` to at most `to`
};

// B/s by test and bytes.
using Figures = std::map<std::pair<std::string, std::int64_t>, double>;

// What a command (the program and its arguments) prints to stdout and stderr. Throws Error.
using Printed = std::function<std::string(const std::vector<std::string>& command)>;

// A tool, the cases of ours that are like its own, and how each side's figures are read.
struct Tool {
  const char* name;
  const char* source;
  // Why nothing can be compared here; empty if something can.
  std::string (*obstacle)(const Sizes& sizes, int gpus);
  Json (*cases)(const Sizes& sizes, int gpus);
  // Names the test and the metric of a record with status ok.
  std::pair<std::string, const char*> (*test_and_metric)(const Record& record);
  // Throws Error if the tool failed, or printed what cannot be read.
  Figures (*measure)(const std::string& path, const Sizes& sizes, int gpus, const Printed& printed);
};

std::span<const Tool> all_tools();

}  // namespace assay::crosscheck
