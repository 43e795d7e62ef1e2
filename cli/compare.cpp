// assay compare: did it get slower between the runs of two sides?
#include "reports/compare/acceptances.h"

#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/error.h"
#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/cost/cost.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <memory>

namespace assay::cli {

namespace {

struct CompareOptions {
  int last = 0;
  std::vector<std::string> sides;  // two words: base and head
  std::vector<std::string> base;
  std::vector<std::string> head;
  std::string tolerance = "3%";
  Prices prices;
  Outputs outputs;
  bool injected = false;
};

constexpr const char* footer =
    "A change counts if it is significant over all cases (false discovery rate 5 %) and exceeds the\n"
    "tolerance. With one run per side the noise between runs is unknown: give at least three runs per\n"
    "side. Exit codes: 1 something is slower by more than the tolerance, or held in base and does not\n"
    "hold in head; 3 nothing could be compared, or a case may be slower by more than the tolerance but\n"
    "is too noisy to say; 2 usage, or both sides have several kinds of machines that do not pair; 0\n"
    "otherwise. Of two folders of assay accept: 1 also if a host passed in base and fails in head; 3 if\n"
    "one is not complete.";

bool report_if_empty(const char* side, const RunSet& set, const std::vector<std::string>& dirs) {
  if (!set.entries().empty()) return false;
  say("assay: compare: no finished case in {} ({})\n", side, fmt::join(dirs, ", "));
  return true;
}

// Two runs as arguments are base and head.
void take_sides(CompareOptions& options) {
  const bool named = !options.base.empty() || !options.head.empty();
  if (!options.sides.empty() && (named || options.sides.size() != 2))
    throw UsageError(fmt::format(
        "compare: two runs are base and head; for several a side: --base DIR... --head DIR... "
        "(given: {} and {})",
        plural(static_cast<std::int64_t>(options.sides.size()), "run"), named ? "--base or --head" : "neither flag"));
  if (options.last > 0) {
    if (options.last < 2 || named || !options.sides.empty())
      throw UsageError("compare: --last takes the newest runs of runs/, at least 2, and no other run");
    options.base = last_runs("compare", static_cast<std::size_t>(options.last));
    options.head = {options.base.back()}, options.base.pop_back();
  }
  if (!options.sides.empty()) options.base = {options.sides[0]}, options.head = {options.sides[1]};
  if (options.base.empty() || options.head.empty())
    throw UsageError(fmt::format("compare: {} is required, or two runs: assay compare BASE HEAD",
                                 options.base.empty() ? "--base" : "--head"));
}

void show_comparison(const CompareOptions& options, const report::Document& document) {
  options.outputs.write_pages(document);
  options.outputs.write_json([&] { return report::render_json(document); });
  options.outputs.print(document);
}

ExitCode compare_fleets(const CompareOptions& options, const report::CompareOptions& asked, Injected injected) {
  const auto base = report::read_acceptance(options.base.front()), head = report::read_acceptance(options.head.front());
  for (const auto* one : {&base, &head})
    if (!one->finished)
      say("assay: compare: {0}: the acceptance is not complete: assay accept --resume {0}\n", one->dir.string());
  if (!base.finished || !head.finished) return ExitCode::no_data;
  if (asked.prices.asked) say("assay: compare: acceptances have no costs: prices are not used\n");
  const report::CompareResult result = report::compare_acceptances(base, head, asked, injected);
  show_comparison(options, result.document);
  return result.counts.exit_code();
}

ExitCode run_compare(CompareOptions options) {
  take_sides(options);
  const report::CompareOptions asked{.tolerance = parse_part("compare: --tolerance", options.tolerance),
                                     .prices = report::load_prices(options.prices)};
  const Injected injected = options.injected ? Injected::include : Injected::keep;
  if (report::are_acceptances(options.base, options.head)) return compare_fleets(options, asked, injected);
  const RunSet base(read_runs(options.base), injected), head(read_runs(options.head), injected);
  say_unused_prices("compare: base", base, asked.prices);
  say_unused_prices("compare: head", head, asked.prices);
  const report::CompareResult result = report::compare(base, head, asked);
  show_comparison(options, result.document);
  const bool no_base = report_if_empty("base", base, options.base);
  const bool no_head = report_if_empty("head", head, options.head);
  return no_base || no_head ? ExitCode::no_data : result.counts.exit_code();
}

}  // namespace

Command compare_command(CLI::App& root) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* app = root.add_subcommand("compare", "Compare runs of two sides, or two acceptances: did it get slower?");
  app->add_option("runs", options->sides, "Two run directories or acceptances: base and head")->type_name("BASE HEAD");
  app->add_option("--last", options->last, "The newest N runs in runs/: the last one against those before it")
      ->type_name("N");
  app->add_option("--base", options->base, "Run directories to compare with")->type_name("DIR");
  app->add_option("--head", options->head, "Run directories to judge")->type_name("DIR");
  app->add_option("--tolerance", options->tolerance, "Ignore changes up to this size (3%, 0.03)")
      ->capture_default_str();
  options->prices.add_to(*app);
  options->outputs.add_to(*app, {"--html", "--md"});
  app->add_flag("--injected", options->injected, "Treat records with injected faults as measurements");
  app->footer(footer);
  return {app, [options] { return run_compare(*options); }};
}

}  // namespace assay::cli
