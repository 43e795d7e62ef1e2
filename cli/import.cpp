// assay import: figures of other tools as run directories.
#include "cli/command.h"
#include "cli/formats.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/figures/printed.h"
#include "reports/exchange/write_runs.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct ImportOptions {
  std::string format, out;
  std::vector<std::string> files, metrics;
  std::string better;
};

// Only the figures that --metric names in a file that is what a command printed.
ForeignFile read_named(const std::string& text, const std::string& file, const ImportOptions& options) {
  ForeignFile all;
  for (const std::string& metric : options.metrics) {
    if (metric == "time" || metric == "lines")
      throw UsageError(fmt::format("{}: --metric {}: give the name of a figure that the file has", file, metric));
    const PrintedFigure found = named_figure({text}, metric, from_word<Better>(options.better), file);
    if (!found.remark.empty()) say("assay: import: {}\n", found.remark);
    ForeignFigure figure;
    figure.name = found.name, figure.metric = found.metric.empty() ? "value" : found.metric;
    figure.unit = *found.unit, figure.better = *found.better, figure.values = found.values;
    all.figures.push_back(std::move(figure));
  }
  return all;
}

// Reads every file before anything is written.
std::vector<ForeignFile> read_all(const ImportOptions& options, const report::ImportFormat& format) {
  constexpr std::uintmax_t max_bytes = 256u << 20;
  std::vector<ForeignFile> all;
  for (const std::string& file : options.files) {
    std::string text;
    try {
      text = read_whole(file, max_bytes, Pipes::read);
    } catch (const Error& error) {
      throw UsageError(fmt::format("import: {}", error.what()));
    }
    all.push_back(options.metrics.empty() ? format.read(text, file) : read_named(text, file, options));
    if (const std::size_t count = all.back().not_read; count > 0)
      say("assay: import: {}: not read: {} of its parts, the first {}\n", file, count, all.back().first_not_read);
  }
  return all;
}

ExitCode run_import(const ImportOptions& options) {
  const auto& format = format_named(report::import_formats(), options.format);
  if ((!options.metrics.empty() || !options.better.empty()) && format.name != "lines")
    throw UsageError(fmt::format("import: --metric and --better are for lines, not for {}", format.name));
  if (options.metrics.empty() && !options.better.empty()) throw UsageError("import: --better needs --metric NAME");
  std::vector<ForeignFile> contents = read_all(options, format);
  results_are_stored();
  if (report::write_runs(std::move(contents), options.files, format.name, options.out, show_text) > 0)
    return ExitCode::ok;
  say("assay: import: no figure in {}\n", fmt::join(options.files, ", "));
  return ExitCode::no_data;
}

}  // namespace

Command import_command(CLI::App& root) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* app = root.add_subcommand("import", "Make run directories from the figures of another tool");
  add_format(*app, options->format, report::import_formats());
  app->add_option("files", options->files, "Files that the tool wrote")->required()->type_name("FILE");
  app->add_option("--out", options->out,
                  "New run directory; with several times or machines, a directory of one run directory each")
      ->required()
      ->type_name("DIR");
  app->add_option("--metric", options->metrics,
                  "Read only the figure NAME of lines, from any output; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME");
  add_better_option(*app, options->better);
  app->footer(app->get_footer() + "\n" + metric_grammar);
  return {app, [options] { return run_import(*options); }};
}

}  // namespace assay::cli
