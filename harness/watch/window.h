// A few steps of a watched job that torch's profiler recorded: their traces, and what they tell.
#pragma once

#include "harness/json/json.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/ranks.h"
#include "harness/watch/steps.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace assay::watch {

struct TraceFile {
  int rank = 0;
  std::string host = {};  // of a job on several
  std::filesystem::path path = {};
};

// The traces of ranks, and why others have none.
struct Traces {
  std::vector<TraceFile> files;
  std::map<int, std::string> missing;  // by rank
  double stood_still = 0;              // s: the most that recording kept a rank from its steps

  // "No trace of rank 1: the job profiles itself.", ranks with the same reason in one line.
  std::vector<std::string> remarks() const;
};
// `folder` is where the ranks have written them.
Traces traces_of(const std::vector<std::unique_ptr<Rank>>& ranks, const std::filesystem::path& folder);

// Holds what traces tell besides what was measured of all steps.
struct Window {
  std::string steps;                                  // "12 to 14"
  std::vector<std::pair<std::string, double>> spans;  // the parts of a GPU's step, s
  std::vector<Diagnosis> found;                       // by rules that need a trace
  std::string text;                                   // lines for people
  Json trace;                                         // for run.json
  std::vector<std::string> remarks;
};

// Passes in what harness/kineto does with traces.
struct TraceReader {
  // `steps` are those that were measured without the profiler. What cannot be read becomes a remark.
  std::function<Window(const std::vector<TraceFile>& files, const JobSteps& steps, bool cuda)> read = {};
  // A compressed copy. Throws Error.
  std::function<void(const std::filesystem::path& from, const std::filesystem::path& to)> keep = {};
};

struct Seen;
struct Shown;
// Reads the traces into `seen.window`; what only they tell joins `seen.found`.
void add_window(const TraceReader& reader, const std::vector<TraceFile>& files, bool cuda, Seen& seen);
// Adds what was seen of recorded steps, and says that they do not count.
void show_window(const Seen& seen, double stood_still, Shown& shown);

}  // namespace assay::watch
