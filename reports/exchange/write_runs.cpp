#include "reports/exchange/write_runs.h"

#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace assay::report {

namespace {

namespace fs = std::filesystem;

// Run directories that are removed again unless all could be written.
class WrittenRuns {
 public:
  explicit WrittenRuns(const fs::path& out) : out_(out) {
    std::error_code none;
    existed_ = fs::exists(out, none);
  }
  ~WrittenRuns() {
    std::error_code none;
    if (whole_) return;
    for (const fs::path& dir : dirs_) fs::remove_all(dir, none);
    if (!existed_) fs::remove(out_, none);
  }
  WrittenRuns(const WrittenRuns&) = delete;
  WrittenRuns& operator=(const WrittenRuns&) = delete;

  // A line about it.
  std::string write(const fs::path& dir, ImportedRun run) {
    std::string text = fmt::format("{}: {} cases of {}{}\n", dir.string(), run.records.size(),
                                   run.run["started"].get<std::string>(), what_is_not_ok(run.records));
    write_run(dir, run.run, std::move(run.records));
    dirs_.push_back(dir);
    return text;
  }
  std::size_t count() const { return dirs_.size(); }
  void finish() {
    sync_file_system(out_);
    whole_ = true;
  }

 private:
  fs::path out_;
  bool existed_ = false, whole_ = false;
  std::vector<fs::path> dirs_;
};

}  // namespace

std::string what_is_not_ok(const std::vector<Record>& records) {
  std::map<Status, int> counts;
  const Record* first = nullptr;
  for (const Record& record : records) {
    if (record.status == Status::ok) continue;
    if (!first) first = &record;
    ++counts[record.status];
  }
  if (!first) return {};
  int all = 0;
  std::vector<std::string> parts;
  for (const auto& [status, count] : counts) {
    all += count;
    parts.push_back(fmt::format("{} {}", count, name_of(status)));
  }
  return fmt::format(", {} not ok: {}; the first {}{}", all, fmt::join(parts, ", "), one_line(first->key),
                     first->reason.empty() ? "" : ": " + one_line(first->reason));
}

std::size_t write_runs(std::vector<ForeignFile> contents, const std::vector<std::string>& files,
                       std::string_view format, const fs::path& out,
                       const std::function<void(const std::string&)>& written) {
  // Records are larger than figures: one run at a time. The last is written when it is known whether it is the only
  // one.
  std::optional<ImportedRun> last;
  WrittenRuns runs(out);
  const auto numbered = [&] { return out / fmt::format("{:06}", runs.count() + 1); };
  for (std::size_t i = 0; i < files.size(); ++i)
    for (ImportedRun& run : runs_of_figures(std::exchange(contents[i].figures, {}), format, files[i])) {
      if (last) written(runs.write(numbered(), std::move(*last)));
      last = std::move(run);
    }
  if (!last) return 0;
  written(runs.write(runs.count() == 0 ? out : numbered(), std::move(*last)));
  runs.finish();
  return runs.count();
}

}  // namespace assay::report
