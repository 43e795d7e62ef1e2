// Writes what files of other tools hold as run directories.
#pragma once

#include "reports/exchange/import.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// Writes the run of the files' figures as `out`, or several, of several times or machines, as out/000001 and so on;
// tells `written` a line about each. Takes the figures out of `contents`, one for each of `files`. Returns how many
// runs there are. If it throws (Error: a file cannot be written), none of them is left in the way of the next try.
std::size_t write_runs(std::vector<ForeignFile> contents, const std::vector<std::string>& files,
                       std::string_view format, const std::filesystem::path& out,
                       const std::function<void(const std::string&)>& written);

// Counts the records of a run that are not ok.
class NotOk {
 public:
  void add(const Record& record);
  // ", 3 not ok: 2 failed, 1 error; the first imported/sort: wrong result"; empty if all are ok.
  std::string text() const;

 private:
  std::map<Status, int> counts_;
  std::string first_;
};

}  // namespace assay::report
