// Figures of other tools as runs that reports, compare and check take.
#pragma once

#include "harness/figures/foreign.h"
#include "harness/json/fwd.h"
#include "harness/record/record.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// A file to import.
struct ForeignInput {
  std::string file;                             // its name
  std::function<bool(std::string& text)> more;  // appends the next part of its text; false at its end
  std::string commit_key = {};                  // gbench: the member of the context that names the commit
  std::string rules = {}, rules_file = {};      // superbench: the text of its rules file, and its name

  // The whole text. Throws UsageError beyond 256 MiB.
  std::string text() const;
};

// A file or a pipe. Throws UsageError if it cannot be read.
ForeignInput file_input(const std::string& file);

struct ImportFormat {
  std::string_view name;     // "gbench"
  std::string_view summary;  // for --help
  // Throws UsageError "FILE: ..." or "FILE: line N: ..." for what it cannot read.
  ForeignFile (*read)(const ForeignInput& input);
};

// All formats; docs/exporting.md says what is read of each.
std::span<const ImportFormat> import_formats();

// Only the figures of these names, from whatever a command printed; `better` is their direction where that does not
// say. Throws UsageError naming the file.
ForeignFile read_named(const ForeignInput& input, const std::vector<std::string>& names, std::optional<Better> better);

// Sets the direction of the metrics, cases or last parts of cases' names that are named. Throws UsageError for a name
// that the files do not have.
void set_directions(std::vector<ForeignFile>& files, const std::map<std::string, Better>& directions);
// A line for each direction that was guessed: "guessed: lower is better for latency, steptime"; empty if none was.
std::string guessed_directions(std::vector<ForeignFile>& files);

// The indices of a file's runs in the order of time.
std::vector<std::size_t> in_order(const ForeignFile& file);
// Passes the records of one of them to `add` and returns the members of run.json, among them "not_ok", the number of
// records that are not ok. `path` and its modification time stand for what the figures do not say. Equal input gives
// equal runs.
Json import_run(const ForeignFile& file, const ForeignRun& run, std::string_view format,
                const std::filesystem::path& path, const std::function<void(Record)>& add);

}  // namespace assay::report
