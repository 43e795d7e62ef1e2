// assay check: judges finished runs against the limits of a floors file, keeps runs and verdict in a pack, and judges a
// pack again.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/files.h"
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
  std::vector<std::string> runs;
  std::string floors;
  std::string json;
  std::string junit;
  std::string pack;
  bool injected = false;
};

ExitCode publish(const CheckOptions& options, const fitness::CheckResult& result) {
  if (!options.json.empty()) write_named_file("check", options.json, dump_document(report::check_json(result)));
  if (!options.junit.empty())
    write_named_file("check", options.junit, report::render_junit(report::check_suite(result)));
  print(report::check_document(result), {options.json, options.junit});
  if (result.runs->entries().empty()) say("assay: check: no finished case in {}\n", fmt::join(options.runs, ", "));
  return exit_code(result.fitness());
}

// Without the hash of its file, which takes a while.
fitness::Judge this_program() { return {std::string(build_info().version), build_id(), {}}; }

ExitCode run_check_of_pack(const CheckOptions& options) {
  const std::string& name = options.runs.front();
  if (!options.pack.empty()) throw UsageError(fmt::format("check: {} is a pack already; --pack takes runs", name));
  const auto floors = options.floors.empty() ? std::nullopt : std::optional(fitness::find_floors(options.floors));
  const report::PackCheck check = report::check_pack(name, floors, options.injected, this_program(), family_names());
  const ExitCode code = publish(options, check.judged->result);
  say("assay: {}: {}\n", name, check.text());
  return code;
}

ExitCode run_check(const CheckOptions& options) {
  std::error_code none;
  const auto file = std::find_if(options.runs.begin(), options.runs.end(),
                                 [&](const std::string& one) { return std::filesystem::is_regular_file(one, none); });
  if (file != options.runs.end() && options.runs.size() > 1)
    throw UsageError(fmt::format("check: {} is no run directory; a pack is checked alone", *file));
  if (file != options.runs.end()) return run_check_of_pack(options);
  if (options.floors.empty()) throw UsageError("check: --floors is required");
  if (options.pack.empty()) {
    fitness::Floors floors = fitness::find_floors(options.floors);
    const report::Judged judged(read_runs(options.runs), std::move(floors), options.injected, family_names());
    return publish(options, judged.result);
  }
  report::require_place_for_pack(options.pack);
  const std::filesystem::path floors_file = fitness::find_floors(options.floors).file;
  fitness::Judge judge = this_program();
  judge.sha256 = sha256_hex(read_whole(program_file(), max_program_bytes));
  const auto judged = report::check_into_pack(run_dirs(options.runs), floors_file, options.injected, std::move(judge),
                                              options.pack, family_names());
  return publish(options, judged->result);
}

}  // namespace

Command check_command(CLI::App& root) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* app =
      root.add_subcommand("check", "Accept a machine: judge finished runs against the limits of a floors file");
  app->add_option("runs", options->runs, "Run directories, or one pack")->required();
  app->add_option("--floors", options->floors,
                  "A floors file, or the name of one in configs/floors; a pack has its own");
  app->add_option("--pack", options->pack, "Write runs, floors and verdict into FILE, a tar archive that others check");
  app->add_option("--json", options->json, "Write all verdicts as JSON to FILE (- for stdout), in base units");
  app->add_option("--junit", options->junit, "Write one test case per floor as JUnit XML to FILE");
  app->add_flag("--injected", options->injected, "Treat records with injected faults as measurements");
  return {app, [options] { return run_check(*options); }};
}

}  // namespace assay::cli
