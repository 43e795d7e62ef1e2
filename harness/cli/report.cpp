// assay report: reads run directories, prints a summary, writes it as Markdown and JSON.
#include "harness/cli/report.h"

#include "harness/cli/command.h"
#include "harness/record/files.h"
#include "reports/render/render.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::vector<std::string> dirs;
  std::string markdown;
  std::string json;
  bool nccl_table = false;
};

// Colour where stdout is a terminal and nobody objects (https://no-color.org).
report::TerminalStyle terminal_style() {
  report::TerminalStyle style;
  if (!isatty(STDOUT_FILENO)) return style;
  const char* no_color = std::getenv("NO_COLOR");
  style.colour = !no_color || *no_color == '\0';
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::clamp<int>(size.ws_col, 60, 100);
  return style;
}

void write_named_file(const std::string& path, const std::string& text) {
  try {
    replace_file(path, text);
  } catch (const Error& error) {
    throw UsageError(fmt::format("report: {}", error.what()));
  }
}

// Each directory once, so that a path given twice does not count twice.
std::vector<RunData> read_runs(const std::vector<std::string>& dirs) {
  std::vector<RunData> runs;
  std::set<fs::path> seen;
  for (const std::string& dir : dirs) {
    std::error_code none;
    const fs::path real = fs::weakly_canonical(dir, none);
    if (seen.insert(none ? fs::path(dir) : real).second) runs.push_back(read_run(dir));
  }
  return runs;
}

ExitCode run_report(const Options& options) {
  const report::RunSet runs(read_runs(options.dirs));
  const report::SummaryOptions summary{.footer = options.markdown.empty() ? "" : "report: " + options.markdown,
                                       .nccl_table = options.nccl_table};
  const report::Document document = report::summarize_runs(runs, {});
  if (!options.markdown.empty()) write_named_file(options.markdown, report::render_markdown(document));
  if (!options.json.empty()) write_named_file(options.json, report::render_json(document));
  print_summary(runs, summary);
  const bool empty = runs.entries().empty();
  if (empty) fmt::print(stderr, "assay: report: no finished case in {}\n", fmt::join(options.dirs, ", "));
  return empty ? ExitCode::no_data : ExitCode::ok;
}

}  // namespace

void print_summary(const report::RunSet& runs, const report::SummaryOptions& options) {
  const std::string text = report::render_terminal(report::summarize_runs(runs, options), terminal_style());
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void report_finished_run(const fs::path& dir) {
  std::vector<RunData> read;
  read.push_back(read_run(dir));
  const report::RunSet runs(std::move(read));
  const fs::path file = dir / "report.md";
  replace_file(file, report::render_markdown(report::summarize_runs(runs, {})));
  print_summary(runs, {.footer = "report: " + file.string()});
}

Command report_command(CLI::App& root) {
  auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("report", "Tables of finished runs: figures, intervals, share of peak, verdicts");
  app->add_option("dirs", options->dirs, "Run directories")->required();
  app->add_option("--md", options->markdown, "Write the whole report as Markdown to FILE");
  app->add_option("--json", options->json, "Write the whole report as JSON to FILE, in base units");
  app->add_flag("--nccl-table", options->nccl_table, "Print collectives in nccl-tests' form too");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace assay::cli
