// assay compare: did it get slower from the runs of one side to those of the other?
#include "reports/compare/compare.h"

#include "cli/command.h"
#include "cli/files.h"
#include "harness/core/units.h"
#include "reports/cost/cost.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace assay::cli {

namespace {

struct CompareOptions {
  std::vector<std::string> base;
  std::vector<std::string> head;
  std::string tolerance = "3%";
  report::PriceFlags prices;
  std::string html;
  std::string markdown;
  std::string json;
  bool injected = false;
};

constexpr const char* footer =
    "A change counts when it is significant over all cases (false discovery rate 5 %) and larger\n"
    "than the tolerance. With one run a side the noise from run to run is not known: give three runs\n"
    "or more a side. Exit codes: 1 something is slower by more than the tolerance, or held in base\n"
    "and does not hold in head; 3 nothing could be compared, or a case may be slower than the\n"
    "tolerance and its noise does not let it be told; 2 usage; 0 otherwise.";

double read_tolerance(const std::string& text) {
  double tolerance = 0;
  try {
    tolerance = parse_fraction(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("compare: --tolerance: {}", error.what()));
  }
  if (tolerance < 0 || tolerance >= 1)
    throw UsageError(fmt::format("compare: --tolerance: {} is not a share from 0 to less than 100 %{}", text,
                                 tolerance >= 1 && tolerance < 100 && !text.ends_with('%')
                                     ? fmt::format("; did you mean {}%?", text)
                                     : std::string()));
  return tolerance;
}

bool said_of_empty(const char* side, const report::RunSet& set, const std::vector<std::string>& dirs) {
  if (!set.entries().empty()) return false;
  fmt::print(stderr, "assay: compare: no finished case in {} ({})\n", side, fmt::join(dirs, ", "));
  return true;
}

ExitCode run_compare(const CompareOptions& options) {
  const report::CompareOptions asked{.tolerance = read_tolerance(options.tolerance),
                                     .prices = report::load_prices(options.prices)};
  const report::Drills drills = options.injected ? report::Drills::take : report::Drills::keep;
  const report::RunSet base(read_runs(options.base), drills), head(read_runs(options.head), drills);
  const report::CompareResult result = report::compare(base, head, asked);
  if (!options.html.empty()) write_named_file("compare", options.html, report::render_html(result.document));
  if (!options.markdown.empty())
    write_named_file("compare", options.markdown, report::render_markdown(result.document));
  if (!options.json.empty()) write_named_file("compare", options.json, report::render_json(result.document));
  const std::string text = report::render_terminal(result.document, terminal_style());
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool no_base = said_of_empty("base", base, options.base), no_head = said_of_empty("head", head, options.head);
  return no_base || no_head ? ExitCode::no_data : result.counts.exit_code();
}

}  // namespace

Command compare_command(CLI::App& root) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* app = root.add_subcommand("compare", "Did it get slower? Runs of two sides, case by case");
  app->add_option("--base", options->base, "Run directories of what it is compared with")->required();
  app->add_option("--head", options->head, "Run directories of what is asked about")->required();
  app->add_option("--tolerance", options->tolerance, "A change within it does not matter (3%, 0.03)")
      ->capture_default_str();
  app->add_option("--prices", options->prices.file, "Prices of machines: JSON or a SkyPilot catalogue (CSV)");
  app->add_option("--price", options->prices.price, "USD an hour of each machine, whole");
  app->add_option("--html", options->html, "Write the whole comparison as one HTML page to FILE");
  app->add_option("--md", options->markdown, "Write the whole comparison as Markdown to FILE");
  app->add_option("--json", options->json, "Write the whole comparison as JSON to FILE, in base units");
  app->add_flag("--injected", options->injected, "Take records with injected faults as if they were measurements");
  app->footer(footer);
  return {app, [options] { return run_compare(*options); }};
}

}  // namespace assay::cli
