// assay report: reads run directories, prints a summary, writes it as Markdown and JSON.
#include "harness/cli/report.h"

#include "harness/cli/command.h"
#include "harness/cli/files.h"
#include "harness/record/files.h"
#include "reports/cost/cost.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::vector<std::string> dirs;
  std::string markdown;
  std::string json;
  report::PriceFlags prices;
  bool nccl_table = false;
};

void print(const report::Document& document) {
  const std::string text = report::render_terminal(document, terminal_style());
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The summary with what the results cost.
report::Document with_costs(report::Document document, const report::RunSet& runs, const report::PriceSource& prices) {
  for (report::Section& section : report::cost_sections(runs, prices)) document.sections.push_back(std::move(section));
  return document;
}

ExitCode run_report(const Options& options) {
  const report::PriceSource prices = report::load_prices(options.prices);
  const report::RunSet runs(read_runs(options.dirs));
  for (const std::string& copy : runs.duplicates()) fmt::print(stderr, "assay: report: {}\n", copy);
  const report::SummaryOptions summary{.footer = options.markdown.empty() ? "" : "report: " + options.markdown,
                                       .nccl_table = options.nccl_table};
  const report::Document document = with_costs(report::summarize_runs(runs, {}), runs, prices);
  if (!options.markdown.empty()) write_named_file("report", options.markdown, report::render_markdown(document));
  if (!options.json.empty()) write_named_file("report", options.json, report::render_json(document));
  print(with_costs(report::summarize_runs(runs, summary), runs, prices));
  const bool empty = runs.entries().empty();
  if (empty) fmt::print(stderr, "assay: report: no finished case in {}\n", fmt::join(options.dirs, ", "));
  return empty ? ExitCode::no_data : ExitCode::ok;
}

}  // namespace

void print_summary(const report::RunSet& runs, const report::SummaryOptions& options) {
  print(report::summarize_runs(runs, options));
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
  app->add_option("--prices", options->prices.file,
                  "Prices of machines: JSON (as configs/prices) or CSV, before shipped ones");
  app->add_option("--price", options->prices.price, "What each machine costs, whole: USD an hour");
  app->add_flag("--nccl-table", options->nccl_table, "Print collectives in nccl-tests' form too");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace assay::cli
