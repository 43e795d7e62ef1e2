// Which tool wrote a text: for commands whose output nobody has described.
#pragma once

#include "harness/ab/command_figures.h"
#include "harness/figures/foreign.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay::report {

// What recognise() knows, for messages.
extern const char* const recognised_formats;

struct RecognisedFile {
  std::string_view format;  // of import_formats()
  ForeignFile contents;
};

// Reads the JSON of gbench, pytest-benchmark, asv, hyperfine or nvbandwidth, whatever a program printed before and
// after it, or else the tables of nvbandwidth or nccl-tests, or else lines "name value unit better". Of Google Benchmark's that ends early, as of a program that
// crashed, the benchmarks that are whole count. Absent for any other text. Throws UsageError "FILE: ..." for a text
// that begins as one of these and is wrong.
std::optional<RecognisedFile> recognise(const std::string& text, const std::string& file);
// The same without lines: an ab::ToolReader.
std::optional<ab::ToolFigures> read_tool(const std::string& text, const std::string& file);

}  // namespace assay::report
