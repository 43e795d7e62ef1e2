// assay report: prints a summary of run directories and writes the report as HTML, Markdown and JSON.
#include "cli/report.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/files.h"
#include "harness/core/streams.h"
#include "reports/cost/cost.h"
#include "reports/page/page.h"
#include "reports/references/references.h"
#include "reports/render/render.h"
#include "reports/sizing/request.h"

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
  Runs runs;
  Outputs outputs;
  Prices prices;
  std::string floors, tokens, only;
  bool nccl_table = false, last = false;
};

ExitCode run_report(ReportOptions options) {
  if (options.last == !options.runs.dirs.empty())
    throw UsageError("report: name run directories, or give --last for the newest run in runs/");
  if (options.last) options.runs.dirs = last_runs("report", 1);
  report::PageOptions page{.prices = report::load_prices(options.prices),
                           .references = report::shipped_references(),
                           .nccl_table = options.nccl_table,
                           .only = options.only};
  if (!options.tokens.empty()) page.items = report::sizing::read_count("report: --tokens", options.tokens);
  const RunSet runs = options.runs.read();
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
  const Outputs& outputs = options.outputs;
  outputs.write_pages(document);
  outputs.write_json([&] { return report::render_json(document); });
  const std::string& written = outputs.html.empty() ? outputs.markdown : outputs.html;
  if (!written.empty()) document.verdict += " · report: " + written;
  outputs.print(document);
  if (runs.injected() > 0 && runs.entries().empty()) return ExitCode::no_data;  // said above
  return options.runs.code_of(runs);
}

}  // namespace

void report_finished_run(RunData run, bool drill, bool all) {
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
  print(all ? document : report::one_screen(document));
}

Command report_command(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app = root.add_subcommand("report", "Show figures, intervals, fraction of peak and verdicts of runs");
  options->runs.add_to(*app)->required(false);
  app->add_flag("--last", options->last, "The newest run in runs/");
  options->outputs.add_to(*app, {"--html", "--md"});
  app->add_option("--floors", options->floors,
                  "Also answer whether these floors are met: a file, or one of configs/floors")
      ->type_name("FILE");
  options->prices.add_to(*app);
  app->add_option("--tokens", options->tokens,
                  "With several kinds of machines: also the bill for so many tokens or images: 100M")
      ->type_name("N");
  app->add_option("--only", options->only, "Show only this section: ranking, cost, ...")->type_name("SECTION");
  app->add_flag("--nccl-table", options->nccl_table, "Also print collectives in the format of nccl-tests");
  return {app, [options] { return run_report(*options); }};
}

}  // namespace assay::cli
