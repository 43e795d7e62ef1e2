// The input of every report: the final records of any number of runs, each with its place.
#pragma once

#include "harness/record/comparable.h"
#include "harness/record/run_dir.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay {

struct MachineRuns;

// The last attempt at one identity in one run. Points into the RunSet, which must outlive it.
struct Entry {
  const RunData* run = nullptr;
  const Record* record = nullptr;
  std::size_t run_index = 0;  // in RunSet::runs()
  std::size_t directory = 0;  // the run directory it came from; hosts of one run share it
  int line = 0;               // line of records.jsonl, from 1

  // "gemm-f32/records.jsonl line 7", for people.
  std::string place() const;
  // An HTML id that does not depend on the order of directories: lower case, digits and '-'.
  std::string anchor() const;
};

// How records that have injected faults are treated.
enum class Injected {
  keep,     // entries like others; each report excludes them and says so
  exclude,  // no entries, but counted
  include,  // treated as measurements: their flags `injected:` become a label, and they compare unless another flag
            // forbids it
};

// Runs ordered by start, then by content, whatever their names. A run given twice (or as a copy) counts once. A run on
// each of several hosts is as many runs (harness/runs/host_runs.h).
class RunSet {
 public:
  explicit RunSet(std::vector<RunData> runs, Injected handling = Injected::keep);
  RunSet(const RunSet&) = delete;
  RunSet& operator=(const RunSet&) = delete;

  const std::vector<RunData>& runs() const { return runs_; }
  // The entries of all runs, run by run in file order.
  const std::vector<Entry>& entries() const { return entries_; }
  std::span<const Entry> entries_of(std::size_t run_index) const;
  // Records left out because of injected faults (Injected::exclude).
  std::size_t injected() const { return injected_; }
  // Runs left out as copies: "b: the same run as a".
  const std::vector<std::string>& duplicates() const { return duplicates_; }
  // Without copies.
  std::size_t directories() const { return directories_; }

 private:
  std::vector<RunData> runs_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> first_;  // entries_ of run i begin here
  std::vector<std::string> duplicates_;
  std::size_t directories_ = 0;
  std::size_t injected_ = 0;

  struct Groups;  // harness/runs/groups.h
  mutable std::shared_ptr<Groups> groups_;
  friend const std::vector<MachineRuns>& by_machine(const RunSet& runs);
};

// Whether fault injection left a flag. The record then proves a check and is not a measurement.
bool injected(const Record& record);
// "3 records have injected faults and were left out: ..."; empty if there are none.
std::string injected_text(const RunSet& runs);

}  // namespace assay
