// assay check: judges finished runs against the limits of a floors file, keeps runs and verdict in a pack, and judges a
// pack again.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/options.h"
#include "harness/core/build_id.h"
#include "harness/core/files.h"
#include "harness/core/program.h"
#include "harness/core/sha256.h"
#include "harness/core/streams.h"
#include "harness/core/version.h"
#include "harness/json/json.h"
#include "reports/acceptance/document.h"
#include "reports/acceptance/packed_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace assay::cli {

namespace {

constexpr std::uintmax_t max_program_bytes = std::uintmax_t{4} << 30;

struct CheckOptions {
  Runs runs;
  Outputs outputs;
  std::string floors, pack;
};

ExitCode publish(const CheckOptions& options, const fitness::CheckResult& result) {
  options.outputs.write_json([&] { return dump_document(report::check_json(result)); });
  options.outputs.write_junit([&] { return report::render_junit(report::check_suite(result)); });
  options.outputs.print(report::check_document(result));
  (void)options.runs.code_of(*result.runs);  // says that there is no case
  return exit_code(result.fitness());
}

// Without the hash of its file, which takes a while.
fitness::Judge this_program() { return {std::string(build_info().version), build_id(), {}}; }

ExitCode run_check_of_pack(const CheckOptions& options) {
  const std::string& name = options.runs.dirs.front();
  if (!options.pack.empty()) throw UsageError(fmt::format("check: {} is a pack already; --pack takes runs", name));
  const auto floors = options.floors.empty() ? std::nullopt : std::optional(fitness::find_floors(options.floors));
  const report::PackCheck check =
      report::check_pack(name, floors, options.runs.injected, this_program(), family_names());
  const ExitCode code = publish(options, check.judged->result);
  say("assay: {}: {}\n", name, check.text());
  return code;
}

ExitCode run_check(const CheckOptions& options) {
  const std::vector<std::string>& dirs = options.runs.dirs;
  std::error_code none;
  const auto file =
      std::ranges::find_if(dirs, [&](const std::string& one) { return std::filesystem::is_regular_file(one, none); });
  if (file != dirs.end() && dirs.size() > 1)
    throw UsageError(fmt::format("check: {} is no run directory; a pack is checked alone", *file));
  if (file != dirs.end()) return run_check_of_pack(options);
  if (options.floors.empty()) throw UsageError("check: --floors is required");
  if (options.pack.empty()) {
    fitness::Floors floors = fitness::find_floors(options.floors);
    const report::Judged judged(read_runs(dirs), std::move(floors), options.runs.injected, family_names());
    fitness::require_hardware_of(judged.runs, judged.floors);
    return publish(options, judged.result);
  }
  report::require_place_for_pack(options.pack);
  const std::filesystem::path floors_file = fitness::find_floors(options.floors).file;
  fitness::Judge judge = this_program();
  judge.sha256 = sha256_hex(read_whole(program_file(), max_program_bytes));
  const auto judged = report::check_into_pack(run_dirs(dirs), floors_file, options.runs.injected, std::move(judge),
                                              options.pack, family_names());
  return publish(options, judged->result);
}

}  // namespace

Command check_command(CLI::App& root) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* app = root.add_subcommand("check", "Judge finished runs against the limits of a floors file");
  options->runs.add_to(*app, "runs")->description("Run directories, or one pack");
  app->add_option("--floors", options->floors, "A floors file, or one of configs/floors; a pack has its own")
      ->type_name("FILE");
  app->add_option("--pack", options->pack, "Write runs, floors and verdict as a tar archive that others can check")
      ->type_name("FILE");
  options->outputs.add_to(*app, {"--junit"});
  return {app, [options] { return run_check(*options); }};
}

}  // namespace assay::cli
