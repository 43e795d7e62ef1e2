// assay floors: limits that are learned from machines known to be healthy.
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/streams.h"
#include "harness/core/units.h"
#include "harness/core/words.h"
#include "harness/json/json.h"
#include "reports/acceptance/learned.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

namespace assay::cli {

namespace {

struct FloorsOptions {
  Runs runs;
  Outputs outputs;
  std::string out;
  std::string false_fail = "0.1%";
  std::string outliers = "refuse";
  bool same_machine = false;
  bool disturbed = false;
};

double false_fail_of(const std::string& text) {
  constexpr double min_rate = 1e-6, max_rate = 0.2;
  const std::string place = "floors learn: --false-fail";
  const double rate = parse_flag(place, text, parse_fraction);
  if (rate < min_rate || rate > max_rate)
    throw UsageError(fmt::format("{}: {} is not from 0.0001 to 20 %", place, text));
  return rate;
}

// A file that people wrote is never replaced.
void refuse_to_replace(const std::string& out) {
  std::error_code none;
  if (std::filesystem::exists(out, none) && !fitness::is_learned(out))
    throw UsageError(
        fmt::format("floors learn: --out {}: it exists, and not all of it was learned; name another file", out));
}

ExitCode run_learn(const FloorsOptions& options) {
  fitness::LearnOptions asked;
  asked.false_fail = false_fail_of(options.false_fail);
  asked.same_machine = options.same_machine;
  asked.disturbed = options.disturbed;
  const auto choices = all_words<fitness::Outliers>();
  asked.outliers = static_cast<fitness::Outliers>(std::ranges::find(choices, options.outliers) - choices.begin());
  refuse_to_replace(options.out);
  const RunSet runs(read_runs(options.runs.dirs));
  const fitness::LearnedFloors learned = fitness::learn(runs, asked);
  if (learned.floors() > 0) write_named_file("floors learn", options.out, dump_document(fitness::floors_of(learned)));
  options.outputs.write_json([&] { return dump_document(report::learned_json(learned)); });
  print(report::learned_document(learned), {options.out, options.outputs.json});
  if (!learned.nothing.empty())
    say("assay: floors learn: {}; nothing was written to {}\n", learned.nothing, options.out);
  return learned.code();
}

}  // namespace

Command floors_command(CLI::App& root) {
  auto options = std::make_shared<FloorsOptions>();
  CLI::App* app = root.add_subcommand("floors", "Learn limits from runs of healthy machines");
  app->require_subcommand(1);
  CLI::App* learn =
      app->add_subcommand("learn", "Learn the limits that a new machine must reach from runs of its kind");
  options->runs.add_dirs_to(*learn);
  learn->add_option("--out", options->out, "Floors file to write; replaced only if all of it was learned")
      ->required()
      ->type_name("FILE");
  learn->add_option("--false-fail", options->false_fail, "Highest share of healthy machines that may fail any floor")
      ->capture_default_str();
  learn->add_option("--outliers", options->outliers, "Runs far from the others: refuse, leave-out or keep them")
      ->check(CLI::IsMember(all_words<fitness::Outliers>()))
      ->capture_default_str();
  learn->add_flag("--same-machine", options->same_machine, "Learn from runs of one machine, for it alone");
  learn->add_flag("--disturbed", options->disturbed, "Use figures that other processes disturbed, too");
  options->outputs.add_to(*learn);
  return {app, [options] { return run_learn(*options); }};
}

}  // namespace assay::cli
