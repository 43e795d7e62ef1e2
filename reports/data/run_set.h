// What every report reads: the final records of any number of runs, each with where it stands.
#pragma once

#include "harness/record/comparable.h"
#include "harness/record/run_dir.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::report {

struct MachineRuns;

// The last attempt of one identity in one run. Points into the RunSet, which must outlive it.
struct Entry {
  const RunData* run = nullptr;
  const Record* record = nullptr;
  std::size_t run_index = 0;  // in RunSet::runs()
  std::size_t directory = 0;  // that it came from, of those that count: hosts of one run share it
  int line = 0;               // of records.jsonl, from 1

  // "gemm-f32/records.jsonl line 7": for people.
  std::string place() const;
  // Equal for equal entries, whatever the order of the directories: an HTML id. Lower case, digits and '-'.
  std::string anchor() const;
};

// What becomes of records that faults were injected into.
enum class Drills {
  keep,       // entries like others: each report tells them apart, and says that it does not count them
  leave_out,  // no entries; counted
  take,       // as if they were measurements: their flags `injected:` become a label, and they compare unless another
              // flag forbids it
};

// Runs in an order that depends on what they hold, not on how they were named: by start, then by content. A run that
// is given twice (or as a copy) counts once. A run on each of several hosts is as many runs (reports/data/host_runs.h).
class RunSet {
 public:
  explicit RunSet(std::vector<RunData> runs, Drills drills = Drills::keep);
  RunSet(const RunSet&) = delete;
  RunSet& operator=(const RunSet&) = delete;

  const std::vector<RunData>& runs() const { return runs_; }
  // Of all runs, run by run, in file order.
  const std::vector<Entry>& entries() const { return entries_; }
  std::span<const Entry> entries_of(std::size_t run_index) const;
  // Records that were left out because faults were injected into them (Drills::leave_out).
  std::size_t injected() const { return injected_; }
  // Copies of runs that were left out: "b: the same run as a".
  const std::vector<std::string>& duplicates() const { return duplicates_; }
  // Directories that count.
  std::size_t directories() const { return directories_; }

 private:
  std::vector<RunData> runs_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> first_;  // entries_ of run i begin here
  std::vector<std::string> duplicates_;
  std::size_t directories_ = 0;
  std::size_t injected_ = 0;

  struct Groups;  // reports/data/groups.h
  mutable std::shared_ptr<Groups> groups_;
  friend const std::vector<MachineRuns>& by_machine(const RunSet& runs);
};

// A flag that fault injection left: such a record proves a check and is no measurement.
bool injected(const Record& record);
// "3 records have injected faults and were left out: they prove checks and are no measurements (--injected takes
// them)"; empty where there are none.
std::string injected_text(const RunSet& runs);

}  // namespace assay::report
