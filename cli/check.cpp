// assay check: judges finished runs against the limits of a floors file, keeps runs and verdict in a pack, and judges a
// pack again.
#include "cli/catalogue.h"
#include "cli/command.h"
#include "cli/files.h"
#include "harness/archive/tar.h"
#include "harness/core/build_id.h"
#include "harness/core/files.h"
#include "harness/core/program.h"
#include "harness/core/sha256.h"
#include "harness/core/streams.h"
#include "harness/core/version.h"
#include "harness/json/json.h"
#include "reports/acceptance/acceptance.h"
#include "reports/acceptance/pack.h"
#include "reports/render/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace assay::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t max_program_bytes = std::uintmax_t{4} << 30;

struct CheckOptions {
  std::vector<std::string> runs;
  std::string floors;
  std::string json;
  std::string junit;
  std::string pack;
  bool injected = false;
};

report::Injected handling(bool injected) { return injected ? report::Injected::include : report::Injected::keep; }

ExitCode publish(const CheckOptions& options, const report::CheckResult& result) {
  if (!options.json.empty()) write_named_file("check", options.json, dump_document(report::check_json(result)));
  if (!options.junit.empty())
    write_named_file("check", options.junit, report::render_junit(report::check_suite(result)));
  print(report::check_document(result), {options.json, options.junit});
  if (result.runs->entries().empty()) say("assay: check: no finished case in {}\n", fmt::join(options.runs, ", "));
  return result.code();
}

// Without the hash of its file, which takes a while.
report::Judge this_program() { return {std::string(build_info().version), build_id(), {}}; }

std::string read_pack_file(const fs::path& path) {
  try {
    return read_whole(path, TarLimits{}.bytes);
  } catch (const Error& error) {
    throw UsageError(fmt::format("check: {}", error.what()));
  }
}

// Only a pack may be replaced: the name may be that of another file by mistake.
void refuse_other_file(const fs::path& path) {
  if (path == "-") throw UsageError("check: --pack needs a file, not standard output");
  std::error_code none;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, none))
    throw UsageError(fmt::format("check: --pack {}: no folder {}", path.string(), folder.string()));
  if (!fs::exists(fs::symlink_status(path, none))) return;
  try {
    if (!fs::is_regular_file(path, none)) throw Error("not a file");
    (void)report::parse_pack(read_pack_file(path), path.string());
  } catch (const Error&) {
    throw UsageError(fmt::format("check: --pack {}: exists and is no whole pack of assay check; it is left as it is",
                                 path.string()));
  }
}

ExitCode check_into_pack(const CheckOptions& options) {
  refuse_other_file(options.pack);
  report::Pack pack;
  const fs::path floors_file = read_floors(options.floors).file;
  pack.floors_name = floors_file.filename().string();
  pack.floors = read_whole(floors_file, max_floors_bytes);
  pack.injected = options.injected;
  pack.judge = this_program();
  pack.judge.sha256 = sha256_hex(read_whole(program_file(), max_program_bytes));
  std::vector<fs::path> dirs = run_dirs(options.runs);
  // Of two copies of a run, the one whose path comes first is reported: keep that order.
  std::sort(dirs.begin(), dirs.end(), [](const fs::path& a, const fs::path& b) { return a.string() < b.string(); });
  for (const fs::path& dir : dirs) pack.runs.push_back(report::pack_run(dir));

  // From here on as for a pack that was read, so that its verdict is the one that others compute.
  const report::Floors floors = report::parse_floors(pack.floors, floors_file);
  const report::RunSet runs(report::runs_of(pack, options.pack), handling(pack.injected));
  const report::CheckResult result = report::check(runs, floors, family_names());
  (void)report::recompute(result);
  pack.verdict = report::verdict_files(result);
  const std::string bytes = report::pack_bytes(pack);
  if (bytes.size() > TarLimits{}.bytes)
    throw Error(fmt::format("{}: its {} bytes are more than a pack may have ({}): pack fewer runs", options.pack,
                            bytes.size(), TarLimits{}.bytes));
  replace_file(options.pack, bytes);
  return publish(options, result);
}

ExitCode check_pack(const CheckOptions& options) {
  const std::string& name = options.runs.front();
  if (!options.pack.empty()) throw UsageError(fmt::format("check: {} is a pack already; --pack takes runs", name));
  const report::Pack pack = report::parse_pack(read_pack_file(name), name);
  const bool as_packed = options.floors.empty() && (pack.injected || !options.injected);
  const report::Floors floors = options.floors.empty()
                                    ? report::parse_floors(pack.floors, fs::path(name) / "floors" / pack.floors_name)
                                    : read_floors(options.floors);
  const report::RunSet runs(report::runs_of(pack, name), handling(pack.injected || options.injected));
  const report::CheckResult result = report::check(runs, floors, family_names());
  report::Recomputed recomputed;
  try {
    recomputed = report::recompute(result);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
  if (as_packed) report::require_same_verdict(pack, report::verdict_files(result), this_program(), name);

  const ExitCode code = publish(options, result);
  say("assay: {}: every byte as packed; {} of {} judged figures computed again from their samples{}; {}\n", name,
      recomputed.from_samples, recomputed.judged,
      recomputed.others.empty() ? std::string() : fmt::format(" (as recorded: {})", fmt::join(recomputed.others, ", ")),
      as_packed ? "the same verdict" : "judged by other terms than the packed verdict, which is not compared");
  return code;
}

ExitCode run_check(const CheckOptions& options) {
  std::error_code none;
  const auto file = std::find_if(options.runs.begin(), options.runs.end(),
                                 [&](const std::string& one) { return fs::is_regular_file(one, none); });
  if (file != options.runs.end() && options.runs.size() > 1)
    throw UsageError(fmt::format("check: {} is no run directory; a pack is checked alone", *file));
  if (file != options.runs.end()) return check_pack(options);
  if (options.floors.empty()) throw UsageError("check: --floors is required");
  if (!options.pack.empty()) return check_into_pack(options);
  const report::Floors floors = read_floors(options.floors);
  const report::RunSet runs(read_runs(options.runs), handling(options.injected));
  return publish(options, report::check(runs, floors, family_names()));
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
