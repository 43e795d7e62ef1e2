// assay import: figures of other tools as run directories.
#include "cli/command.h"
#include "cli/formats.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "reports/exchange/write_runs.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct ImportOptions {
  std::string format, out;
  std::vector<std::string> files;
};

// Reads every file before anything is written.
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

ExitCode run_import(const ImportOptions& options) {
  const auto& format = format_named(report::import_formats(), options.format);
  std::vector<report::ForeignFile> contents = read_all(options, format);
  results_are_stored();
  if (report::write_runs(std::move(contents), options.files, format.name, options.out, show_text) > 0)
    return ExitCode::ok;
  say("assay: import: no figure in {}\n", fmt::join(options.files, ", "));
  return ExitCode::no_data;
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
