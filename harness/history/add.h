// Finished runs go into the store of a history.
#pragma once

#include "harness/core/error.h"
#include "harness/history/store/store.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace assay::history {

struct RunDirectories {
  std::vector<std::filesystem::path> found;  // in the order of what was given, each once
  std::vector<std::string> unreadable;       // "FOLDER cannot be read: WHY": it may hold runs
};
// The run directories among these paths, and in the folders among them. Throws UsageError for a path that is no
// directory, and for a folder without a run.
RunDirectories run_directories(const std::vector<std::string>& given);

struct AddOutput {
  std::function<void(const std::string& line)> result;  // what became of a run: "runs/a: added, 12 figures"
  std::function<void(const std::string& line)> remark;  // what could not be read or added, and why
};
// Adds the runs, a host of a run with --each-host by itself. A run that cannot be added is named, and does not keep the
// others out. Returns the worst code of what was not added. Throws StoreError if the store is full or damaged.
ExitCode add_runs(store::Store& store, const RunDirectories& runs, const store::AddOptions& options,
                  const AddOutput& output);

}  // namespace assay::history
