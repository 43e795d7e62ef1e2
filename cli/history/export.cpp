// assay history export: all figures for other programs.
#include "harness/history/export.h"
#include "cli/history/history.h"
#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/streams.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace assay::cli {

namespace {

struct HistoryExportOptions {
  std::string store, format, out = "-";
  history::ExportRequest request;
};

// A stream into a file that replaces another when it is whole, or to stdout.
class ExportFile {
 public:
  explicit ExportFile(const std::string& path) {
    try {
      if (path != "-") file_.emplace(path);
    } catch (const Error& error) {
      throw UsageError(fmt::format("history export: {}", error.what()));
    }
  }

  // Stores of older builds may hold secrets.
  void line(std::string text) {
    text = mask_secrets(text) + "\n";
    file_ ? file_->write(text) : show_text(text);
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  std::optional<NewFile> file_;
};

ExitCode run_history_export(const HistoryExportOptions& options) {
  store::Contents contents = store::Store::open_existing(store_path(options.store)).read_all();
  history::ExportRequest request = options.request;
  request.format = *from_word<history::ExportFormat>(options.format);
  ExportFile out(options.out);
  history::export_history(std::move(contents), request, [&](std::string line) { out.line(std::move(line)); });
  out.finish();
  return ExitCode::ok;
}

}  // namespace

Command history_export_command(CLI::App& history) {
  auto options = std::make_shared<HistoryExportOptions>();
  CLI::App* app = history.add_subcommand("export", "Write all figures for other programs");
  app->add_option("--format", options->format,
                  "csv: a row per figure, as `assay import csv` reads it; jsonl: everything; otava: a row per run")
      ->required()
      ->check(CLI::IsMember(all_words<history::ExportFormat>()));
  app->add_option("--out", options->out, "File to write (- for stdout, the default)")->type_name("FILE");
  app->add_option("--series", options->request.series,
                  "Only series whose names or keys contain PATTERN, or match it (* and ?)");
  app->add_option("--machine", options->request.machine, "Only machines whose names contain PATTERN, or match it");
  add_store_option(*app, options->store);
  return {app, [options] { return run_history_export(*options); }};
}

}  // namespace assay::cli
