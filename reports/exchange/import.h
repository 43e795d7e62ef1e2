// Figures of other tools as runs that reports, compare and check take.
#pragma once

#include "harness/figures/foreign.h"
#include "harness/json/fwd.h"
#include "harness/record/record.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

struct ImportFormat {
  std::string_view name;     // "gbench"
  std::string_view summary;  // for --help
  // Throws UsageError "FILE: ..." or "FILE: line N: ..." for what it cannot read.
  ForeignFile (*read)(const std::string& text, const std::string& file);
};

// All formats:
//  gbench            Google Benchmark's JSON: real_time of each repetition, and its rates; errors, what was skipped
//  pytest-benchmark  its JSON: the data of each benchmark, else its median
//  nccl-tests        its JSON (-J) or the table that it prints: algbw, busbw and wrong elements, out of place and in
//                    place; a failure of the whole test is that of each of its rows
//  superbench        results-summary.jsonl: a machine per line, a metric or a return code per member
//  csv               time,machine,case,metric,unit,better,value[,low][,high][,commit][,status][,reason][,fact.NAME]...
//  lines             "name value unit better" or "name failed|error|skipped reason" on each line
std::span<const ImportFormat> import_formats();

// A run without a directory: the members of run.json, among them "not_ok", the number of records that are not ok, and
// its records.
struct ImportedRun {
  Json run;
  std::vector<Record> records;
};

// One run per time, machine, commit and facts, in the order of time. `file` and its modification time stand for what
// the figures do not say. Equal input gives equal runs.
std::vector<ImportedRun> runs_of_figures(std::vector<ForeignFigure> figures, std::string_view format,
                                         const std::filesystem::path& file);

}  // namespace assay::report
