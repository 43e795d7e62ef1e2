// All figures of a history in the forms of other programs.
#pragma once

#include "harness/core/words.h"
#include "harness/history/store/store.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace assay::history {

// csv: a row per figure, as `assay import csv` reads it; jsonl: everything, a line each; otava: Apache Otava's CSV, a
// row per run and a column per series. Otava takes no empty cell, so only runs with all figures count.
enum class ExportFormat { csv, jsonl, otava };
constexpr auto words(ExportFormat) { return std::to_array<std::string_view>({"csv", "jsonl", "otava"}); }

struct ExportRequest {
  ExportFormat format = ExportFormat::csv;
  std::string series = {}, machine = {};  // patterns as of matches(); empty: all
};

// Calls write(line) for each line, without its end. Equal contents give equal lines. `contents` is what
// Store::read_all() gave. Throws UsageError if otava is to show several machines, and Error with ExitCode::no_data if
// it has nothing to show.
void export_history(store::Contents contents, const ExportRequest& request,
                    const std::function<void(std::string line)>& write);

}  // namespace assay::history
