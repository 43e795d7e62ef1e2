// assay floors: limits that are learned from machines known to be healthy.
#include "cli/command.h"
#include "cli/files.h"
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
  std::vector<std::string> dirs;
  std::string out, json;
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
  const auto words = all_words<fitness::Outliers>();
  asked.outliers =
      static_cast<fitness::Outliers>(std::find(words.begin(), words.end(), options.outliers) - words.begin());
  refuse_to_replace(options.out);
  const RunSet runs(read_runs(options.dirs));
  const fitness::LearnedFloors learned = fitness::learn(runs, asked);
  if (learned.floors() > 0) write_named_file("floors learn", options.out, dump_document(fitness::floors_of(learned)));
  if (!options.json.empty())
    write_named_file("floors learn", options.json, dump_document(report::learned_json(learned)));
  print(report::learned_document(learned), {options.out, options.json});
  if (!learned.nothing.empty())
    say("assay: floors learn: {}; nothing was written to {}\n", learned.nothing, options.out);
  return learned.code();
}

}  // namespace

Command floors_command(CLI::App& root) {
  auto options = std::make_shared<FloorsOptions>();
  CLI::App* app = root.add_subcommand("floors", "Floors files for check: limits learned from healthy machines");
  app->require_subcommand(1);
  CLI::App* learn =
      app->add_subcommand("learn", "From runs of machines of one kind, the limits that a new one's run must reach");
  learn->add_option("dirs", options->dirs, "Run directories")->required();
  learn->add_option("--out", options->out, "The floors file to write; replaced only if all of it was learned")
      ->required();
  learn
      ->add_option("--false-fail", options->false_fail, "The most runs of healthy machines that miss any of the floors")
      ->capture_default_str();
  learn
      ->add_option("--outliers", options->outliers,
                   "If machines stand apart, or runs of one machine: refuse, leave-out, or keep")
      ->check(CLI::IsMember(all_words<fitness::Outliers>()))
      ->capture_default_str();
  learn->add_flag("--same-machine", options->same_machine, "The runs are of one machine, and the floors for it alone");
  learn->add_flag("--disturbed", options->disturbed, "Use figures that others on the machine have disturbed, too");
  learn->add_option("--json", options->json, "Write what was learned as JSON to FILE (- for stdout), in base units");
  return {app, [options] { return run_learn(*options); }};
}

}  // namespace assay::cli
