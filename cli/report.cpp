// assay report: prints a summary of run directories and writes the report as HTML, Markdown and JSON.
#include "cli/report.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/files.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "reports/cost/cost.h"
#include "reports/page/page.h"
#include "reports/references/references.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

namespace assay::cli {

namespace fs = std::filesystem;

namespace {

struct ReportOptions {
  std::vector<std::string> dirs;
  std::string html;
  std::string markdown;
  std::string json;
  std::string floors;
  report::PriceFlags prices;
  bool nccl_table = false;
  bool injected = false;
};

ExitCode run_report(const ReportOptions& options) {
  report::PageOptions page{.prices = report::load_prices(options.prices),
                           .references = report::shipped_references(),
                           .nccl_table = options.nccl_table};
  const RunSet runs(read_runs(options.dirs), options.injected ? Injected::include : Injected::exclude);
  if (const std::string note = injected_text(runs); !note.empty()) say("assay: report: {}\n", note);
  for (const std::string& copy : runs.duplicates()) say("assay: report: {}\n", copy);
  say_unused_prices("report", runs, page.prices);
  fitness::Floors floors;
  std::optional<fitness::CheckResult> checked;
  if (!options.floors.empty()) {
    floors = fitness::find_floors(options.floors);
    checked = fitness::check(runs, floors, family_names());
    page.floors = &*checked;
  }
  report::Document document = report::whole_report(runs, page);
  if (!options.html.empty()) write_named_file("report", options.html, report::render_html(document));
  if (!options.markdown.empty()) write_named_file("report", options.markdown, report::render_markdown(document));
  if (!options.json.empty()) write_named_file("report", options.json, report::render_json(document));
  const std::string& written = options.html.empty() ? options.markdown : options.html;
  if (!written.empty()) document.verdict += " · report: " + written;
  print(document, {options.html, options.markdown, options.json});
  const bool empty = runs.entries().empty();
  if (empty && runs.injected() == 0) say("assay: report: no finished case in {}\n", fmt::join(options.dirs, ", "));
  return empty ? ExitCode::no_data : ExitCode::ok;
}

}  // namespace

void report_finished_run(RunData run, bool drill) {
  const fs::path dir = run.dir;
  std::vector<RunData> read;
  read.push_back(std::move(run));
  const RunSet runs(std::move(read), drill ? Injected::include : Injected::exclude);
  if (const std::string note = injected_text(runs); !note.empty()) say("assay: {}\n", note);
  report::Document document =
      report::whole_report(runs, {.prices = report::load_prices({}), .references = report::shipped_references()});
  const fs::path page = dir / "report.html";
  replace_file(page, report::render_html(document));
  replace_file(dir / "report.md", report::render_markdown(document));
  if (drill) document.verdict += " · with injected faults, not a measurement";
  document.verdict += " · report: " + page.string();
  results_are_stored();
  print(document);
}

Command report_command(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app =
      root.add_subcommand("report", "Tables of finished runs: figures, intervals, fraction of peak, verdicts");
  app->add_option("dirs", options->dirs, "Run directories")->required();
  app->add_option("--html", options->html, "Write the whole report as one self-contained HTML page to FILE");
  app->add_option("--md", options->markdown, "Write the whole report as Markdown to FILE");
  app->add_option("--json", options->json, "Write the whole report as JSON to FILE (- for stdout), in base units");
  app->add_option("--floors", options->floors,
                  "Also answer whether these floors are met: a file, or the name of one in configs/floors");
  app->add_option("--prices", options->prices.file,
                  "Prices of machines: JSON (like configs/prices) or CSV; searched before the shipped ones");
  app->add_option("--price", options->prices.price, "Price of each whole machine in USD per hour");
  app->add_flag("--injected", options->injected, "Treat records with injected faults as measurements");
  app->add_flag("--nccl-table", options->nccl_table, "Also print collectives in the format of nccl-tests");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace assay::cli
