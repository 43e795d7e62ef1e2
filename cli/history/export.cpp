// assay history export: all figures, or the open events, for other programs.
#include "harness/history/export.h"
#include "cli/history/history.h"
#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "reports/history/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace assay::cli {

namespace {

struct HistoryExportOptions {
  std::string store, format, out = "-";
  history::ExportRequest request;
  JudgeFlags judge;
};

constexpr const char* prometheus = "prometheus";

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
  void text(const std::string& text) {
    const std::string shown = mask_secrets(text);
    file_ ? file_->write(shown) : show_text(shown);
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  std::optional<NewFile> file_;
};

// As a check would find them now, with what people decided since the last one.
ExitCode export_events(const HistoryExportOptions& options) {
  constexpr const char* verb = "history export";
  options.judge.options(verb);  // says first what is wrong with them
  store::Store store = store::Store::open_existing(store_path(options.store));
  history::History history =
      history::read_history(store, options.judge.options(verb, store, history::OtherSettings::counts));
  history.found = history::seen(history, {options.request.series, {}});
  std::erase_if(history.found.events, [&](const history::Event& event) {
    return std::ranges::none_of(event.machines,
                                [&](const std::string& one) { return history::matches(options.request.machine, one); });
  });
  ExportFile out(options.out);
  out.text(history::prometheus_events(history));
  out.finish();
  const history::Outcome outcome = history::outcome_of(history);
  return outcome.code == ExitCode::no_data ? with_reason(verb, outcome.code, outcome.why) : ExitCode::ok;
}

ExitCode run_history_export(const HistoryExportOptions& options) {
  if (options.format == prometheus) return export_events(options);
  store::Contents contents = store::Store::open_existing(store_path(options.store)).read_all();
  history::ExportRequest request = options.request;
  request.format = *from_word<history::ExportFormat>(options.format);
  ExportFile out(options.out);
  history::export_history(std::move(contents), request, [&](const std::string& line) { out.text(line + "\n"); });
  out.finish();
  return ExitCode::ok;
}

}  // namespace

Command history_export_command(CLI::App& history) {
  auto options = std::make_shared<HistoryExportOptions>();
  CLI::App* app = history.add_subcommand("export", "Write all figures, or the open events, for other programs");
  std::vector<std::string> formats = all_words<history::ExportFormat>();
  formats.emplace_back(prometheus);
  app->add_option("--format", options->format,
                  "csv: a row per figure, as `assay import csv` reads it; jsonl: everything; otava: a row per run;\n"
                  "prometheus: a gauge per open event, for alerts")
      ->required()
      ->check(CLI::IsMember(formats));
  app->add_option("--out", options->out, "File to write (- for stdout, the default)")->type_name("FILE");
  app->add_option("--series", options->request.series,
                  "Only series whose names or keys contain PATTERN, or match it (* and ?)");
  app->add_option("--machine", options->request.machine, "Only machines whose names contain PATTERN, or match it");
  options->judge.add_to(*app);
  add_store_option(*app, options->store);
  app->footer(
      "Exit code of prometheus: 3 the history is empty or too little of it arrived to say, as of `history check`.");
  return {app, [options] { return run_history_export(*options); }};
}

}  // namespace assay::cli
