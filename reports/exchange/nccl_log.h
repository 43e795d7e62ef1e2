// The text that nccl-tests and rccl-tests print, as logs hold it: with the prefixes of launchers, between the lines of
// other programs, of many versions.
#pragma once

#include "harness/figures/foreign_run.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

// The results of one size, out of place or in place; what is absent is unknown.
struct NcclHalf {
  std::string place;                                              // "out_of_place", "in_place"
  std::optional<double> algbw, busbw;                             // bytes per second
  std::optional<double> wrong;                                    // elements; absent if they were not checked
  std::vector<std::pair<std::string, std::string>> columns = {};  // that are not known, with their texts
};

struct NcclRow {
  double bytes = 0;
  std::string type, redop, root;
  std::vector<NcclHalf> halves;
};

// One test of a log: its banner, its table and how it ended.
struct NcclTest {
  std::string collective;  // "all_reduce"; empty if nothing names it
  int table = 1;           // counts the tables without a name
  Attributes conditions;   // by the banner: graphs, blocking, aggregation
  ForeignWorld world;
  std::vector<NcclRow> rows;
  std::optional<std::pair<Status, std::string>> failure;  // of the whole test
  std::string out_of_bounds;                              // what it says of wrong values, if it found some
};

struct NcclLog {
  std::vector<NcclTest> tests;
  std::string time;     // of the first line with a date, as it is written
  std::string version;  // of the library
  std::size_t not_read = 0;
  std::string first_not_read;
  std::vector<std::string> remarks;
};

// Throws UsageError "FILE: line N: ..." for a unit that is not known.
NcclLog read_nccl_log(const std::string& text, const std::string& file);

inline constexpr int max_ranks = 1'000'000;

// The ranks of a process: its threads x their GPUs. Throws UsageError "PLACE is 0: ..." unless it is from 1 to
// max_ranks.
int ranks_of_process(double threads_times_gpus, const std::string& place);

// "2.27.7" of 22707; as it is if it is no such number.
std::string nccl_version_text(double code);

}  // namespace assay::report
