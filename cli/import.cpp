// assay import: figures of other tools as run directories.
#include "reports/exchange/import.h"
#include "cli/command.h"
#include "cli/formats.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

struct ImportOptions {
  std::string format, out;
  std::vector<std::string> files;
};

// Of each file, before anything is written.
std::vector<report::ForeignFile> read_all(const ImportOptions& options, const report::ImportFormat& format) {
  constexpr std::uintmax_t max_bytes = 256u << 20;
  std::vector<report::ForeignFile> all;
  for (const std::string& file : options.files) {
    std::string text;
    try {
      text = read_whole(file, max_bytes, Pipes::read);
    } catch (const Error& error) {
      throw UsageError(fmt::format("import: {}", error.what()));
    }
    all.push_back(format.read(text, file));
    if (const std::size_t count = all.back().not_read; count > 0)
      say("assay: import: {}: not read: {} of its parts, the first {}\n", file, count, all.back().first_not_read);
  }
  return all;
}

// ", 3 not ok: 2 failed, 1 error, the first imported/sort: wrong result"; empty if all are ok.
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

// The run directories that an import has made: all of them, or none that would be in the way of the next try.
class Imported {
 public:
  explicit Imported(const fs::path& out) : out_(out) {
    std::error_code none;
    existed_ = fs::exists(out, none);
  }
  ~Imported() {
    std::error_code none;
    if (whole_) return;
    for (const fs::path& dir : dirs_) fs::remove_all(dir, none);
    if (!existed_) fs::remove(out_, none);
  }
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  void write(const fs::path& dir, report::ImportedRun run) {
    const std::string text = fmt::format("{}: {} cases of {}{}\n", dir.string(), run.records.size(),
                                         run.run["started"].get<std::string>(), what_is_not_ok(run.records));
    write_run(dir, run.run, std::move(run.records));
    dirs_.push_back(dir);
    show_text(text);
  }
  void finish() {
    sync_file_system(out_);
    whole_ = true;
  }

 private:
  fs::path out_;
  bool existed_ = false, whole_ = false;
  std::vector<fs::path> dirs_;
};

ExitCode run_import(const ImportOptions& options) {
  const auto& format = format_named(report::import_formats(), options.format);
  std::vector<report::ForeignFile> files = read_all(options, format);
  const fs::path out = options.out;
  // Records are larger than figures: one run at a time. The last is written when it is known whether it is the only
  // one.
  std::optional<report::ImportedRun> last;
  results_are_stored();
  Imported imported(out);
  std::size_t number = 0;
  const auto numbered = [&] { return out / fmt::format("{:06}", ++number); };
  for (std::size_t i = 0; i < files.size(); ++i)
    for (report::ImportedRun& run :
         report::runs_of_figures(std::exchange(files[i].figures, {}), format.name, options.files[i])) {
      if (last) imported.write(numbered(), std::move(*last));
      last = std::move(run);
    }
  if (!last) {
    say("assay: import: no figure in {}\n", fmt::join(options.files, ", "));
    return ExitCode::no_data;
  }
  imported.write(number == 0 ? out : numbered(), std::move(*last));
  imported.finish();
  return ExitCode::ok;
}

}  // namespace

Command import_command(CLI::App& root) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* app = root.add_subcommand("import", "Makes run directories from the figures of another tool");
  add_format(*app, options->format, report::import_formats());
  app->add_option("files", options->files, "What the tool has written")->required();
  app->add_option("--out", options->out,
                  "New run directory; with several times or machines, a directory of one run directory each")
      ->required();
  return {app, [options] { return run_import(*options); }};
}

}  // namespace assay::cli
