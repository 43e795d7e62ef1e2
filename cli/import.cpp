// assay import: figures of other tools as run directories.
#include "reports/exchange/import.h"
#include "cli/command.h"
#include "cli/formats.h"
#include "harness/record/files.h"
#include "harness/record/run_dir.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

struct ImportOptions {
  std::string format, out;
  std::vector<std::string> files;
};

std::vector<report::ImportedRun> read_all(const ImportOptions& options) {
  constexpr std::uintmax_t max_bytes = 256u << 20;
  const auto& format = format_named(report::import_formats(), options.format);
  std::vector<report::ImportedRun> runs;
  for (const std::string& file : options.files) {
    std::string text;
    try {
      text = read_whole(file, max_bytes);
    } catch (const Error& error) {
      throw UsageError(fmt::format("import: {}", error.what()));
    }
    for (report::ImportedRun& run : report::runs_of_figures(format.read(text, file), format.name, file))
      runs.push_back(std::move(run));
  }
  return runs;
}

ExitCode run_import(const ImportOptions& options) {
  const std::vector<report::ImportedRun> runs = read_all(options);
  if (runs.empty()) {
    fmt::print(stderr, "assay: import: no figure in {}\n", fmt::join(options.files, ", "));
    return ExitCode::no_data;
  }
  std::size_t number = 0;
  for (const report::ImportedRun& run : runs) {
    const fs::path dir =
        runs.size() == 1 ? fs::path(options.out) : fs::path(options.out) / fmt::format("{:06}", ++number);
    RunWriter writer = RunWriter::create(dir, run.run);
    for (const Record& record : run.records) writer.append(record);
    fmt::print("{}: {} cases of {}\n", dir.string(), run.records.size(), run.run["started"].get<std::string>());
  }
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
