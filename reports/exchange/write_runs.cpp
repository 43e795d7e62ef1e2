#include "reports/exchange/write_runs.h"

#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>

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
  std::string write(const fs::path& dir, const ForeignFile& file, const ForeignRun& run, std::string_view format,
                    const fs::path& path) {
    NotOk not_ok;
    std::size_t cases = 0;
    std::string started;
    write_run(dir, [&](const std::function<void(Record)>& add) {
      Json json = import_run(file, run, format, path, [&](Record record) {
        not_ok.add(record);
        ++cases;
        add(std::move(record));
      });
      started = json["started"].get<std::string>();
      return json;
    });
    dirs_.push_back(dir);
    return fmt::format("{}: {} cases of {}{}\n", dir.string(), cases, started, not_ok.text());
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

void NotOk::add(const Record& record) {
  if (record.status == Status::ok) return;
  ++counts_[record.status];
  if (first_.empty()) first_ = one_line(record.key) + (record.reason.empty() ? "" : ": " + one_line(record.reason));
}

std::string NotOk::text() const {
  if (counts_.empty()) return {};
  int all = 0;
  std::vector<std::string> parts;
  for (const auto& [status, count] : counts_) {
    all += count;
    parts.push_back(fmt::format("{} {}", count, name_of(status)));
  }
  return fmt::format(", {} not ok: {}; the first {}", all, fmt::join(parts, ", "), first_);
}

std::size_t write_runs(std::vector<ForeignFile> contents, const std::vector<std::string>& files,
                       std::string_view format, const fs::path& out,
                       const std::function<void(const std::string&)>& written) {
  std::size_t count = 0;
  for (const ForeignFile& file : contents) count += in_order(file).size();
  WrittenRuns runs(out);
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const std::size_t which : in_order(contents[i])) {
      ForeignRun run = std::exchange(contents[i].runs[which], {});  // its memory is free when it is written
      const fs::path dir = count == 1 ? out : out / fmt::format("{:06}", runs.count() + 1);
      written(runs.write(dir, contents[i], run, format, files[i]));
    }
  if (count > 0) runs.finish();
  return count;
}

}  // namespace assay::report
