// assay crosscheck: our figures beside those of nccl-tests and nvbandwidth, in alternation on this machine.
#include "harness/crosscheck/crosscheck.h"

#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "reports/crosscheck/crosscheck.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <string>

namespace assay::cli {

namespace {

struct CrosscheckOptions {
  Outputs outputs;
  int pairs = 9;
  std::string tolerance = "2%", from = "1KiB", to = "1GiB";
};

constexpr const char* crosscheck_footer =
    "Looks for all_reduce_perf (nccl-tests) and nvbandwidth on the PATH. A ratio is ours over the\n"
    "tool's, the median of the pairs with its 95 % interval. Exit codes: 0 every interval is within\n"
    "the tolerance; 1 one is beyond it; 3 one reaches over it, or something could not be compared;\n"
    "2 usage; 4 a tool or Assay failed.";

crosscheck::Sizes sizes_of(const CrosscheckOptions& options) {
  crosscheck::Sizes sizes{parse_flag("crosscheck: --min-bytes", options.from, parse_bytes),
                          parse_flag("crosscheck: --max-bytes", options.to, parse_bytes),
                          {}};
  if (sizes.from < 4 || sizes.from % 4 != 0)
    throw UsageError(
        fmt::format("crosscheck: --min-bytes {}: must be a multiple of 4 bytes, the size of an f32", options.from));
  if (sizes.to < sizes.from || sizes.to > std::int64_t{1} << 40)
    throw UsageError(fmt::format("crosscheck: --max-bytes {}: must be from {} to 1 TiB", options.to, options.from));
  for (std::int64_t bytes = sizes.from; bytes <= sizes.to; bytes *= crosscheck::size_factor) sizes.all.push_back(bytes);
  return sizes;
}

double tolerance_of(const std::string& text) {
  const double tolerance = parse_flag("crosscheck: --tolerance", text, parse_fraction);
  if (!(tolerance > 0)) throw UsageError(fmt::format("crosscheck: --tolerance {}: must be above 0", text));
  return tolerance;
}

ExitCode run_crosscheck(const CrosscheckOptions& options) {
  const crosscheck::Request request{
      .pairs = options.pairs, .tolerance = tolerance_of(options.tolerance), .sizes = sizes_of(options)};
  const crosscheck::Result result = crosscheck::compare_with_tools(request, crosscheck::this_machine());
  if (result.rows.empty()) say("assay: crosscheck: nothing could be compared: {}\n", fmt::join(result.remarks, "; "));
  options.outputs.write_json([&] { return dump_document(report::crosscheck_json(result), 2); });
  if (!result.rows.empty()) options.outputs.print(report::crosscheck_document(result));
  return exit_code(result.fitness());
}

}  // namespace

Command crosscheck_command(CLI::App& root) {
  auto options = std::make_shared<CrosscheckOptions>();
  CLI::App* app = root.add_subcommand("crosscheck", "Measure GPUs beside nccl-tests and nvbandwidth");
  options->outputs.add_to(*app);
  app->add_option("--pairs", options->pairs, "How often each side is measured")
      ->check(CLI::Range(crosscheck::min_pairs, 1000))
      ->capture_default_str();
  app->add_option("--tolerance", options->tolerance, "How far a ratio may be from 1 (2%, 0.02)")->capture_default_str();
  app->add_option("--min-bytes", options->from, "The smallest size; each further one is 16 times as large")
      ->type_name("BYTES")
      ->capture_default_str();
  app->add_option("--max-bytes", options->to, "The largest size")->type_name("BYTES")->capture_default_str();
  app->footer(crosscheck_footer);
  return {app, [options] { return run_crosscheck(*options); }};
}

}  // namespace assay::cli
