#include "reports/acceptance/packed_check.h"

#include "harness/archive/tar.h"
#include "harness/core/files.h"
#include "harness/core/secrets.h"
#include "harness/core/streams.h"
#include "harness/fitness/sent.h"
#include "reports/acceptance/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

namespace assay::report {

using namespace fitness;

namespace {

namespace fs = std::filesystem;

std::string read_pack_file(const fs::path& path) {
  try {
    return read_whole(path, TarLimits{}.bytes);
  } catch (const Error& error) {
    throw UsageError(fmt::format("check: {}", error.what()));
  }
}

}  // namespace

Judged::Judged(std::vector<RunData> judged_runs, Floors by, bool injected, std::span<const std::string> families,
               const CheckRules& rules)
    : floors(std::move(by)),
      runs(std::move(judged_runs), injected ? Injected::include : Injected::keep),
      result(check(runs, floors, families, rules)) {}

void require_place_for_pack(const fs::path& path) {
  if (path == "-") throw UsageError("check: --pack needs a file, not standard output");
  std::error_code none;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, none))
    throw UsageError(fmt::format("check: --pack {}: no folder {}", path.string(), folder.string()));
  if (!fs::exists(fs::symlink_status(path, none))) return;
  try {
    if (!fs::is_regular_file(path, none)) throw Error("not a file");
    (void)parse_pack(read_pack_file(path), path.string());
  } catch (const Error&) {
    throw UsageError(fmt::format("check: --pack {}: exists and is no whole pack of assay check; it is left as it is",
                                 path.string()));
  }
}

std::unique_ptr<const Judged> check_into_pack(std::vector<fs::path> dirs, const fs::path& floors_file, bool injected,
                                              Judge judge, const std::string& path,
                                              std::span<const std::string> families) {
  Pack pack;
  pack.floors_name = floors_file.filename().string();
  pack.floors = mask_secrets(read_whole(floors_file, max_floors_bytes));
  pack.injected = injected;
  pack.judge = std::move(judge);
  // The report names the copy of a run whose path comes first: keep that order.
  std::ranges::sort(dirs, [](const fs::path& a, const fs::path& b) { return a.string() < b.string(); });
  for (const fs::path& dir : dirs) pack.runs.push_back(pack_run(dir));

  // From here on as for a pack that was read, so that its verdict is the one that others compute.
  auto judged =
      std::make_unique<const Judged>(runs_of(pack, path), parse_floors(pack.floors, floors_file), injected, families);
  require_hardware_of(judged->runs, judged->floors);
  (void)recompute(judged->result);
  pack.verdict = verdict_files(judged->result);
  const std::string bytes = pack_bytes(pack);
  if (bytes.size() > TarLimits{}.bytes)
    throw Error(fmt::format("{}: its {} bytes are more than a pack may have ({}): pack fewer runs", path, bytes.size(),
                            TarLimits{}.bytes));
  replace_file(path, bytes);
  say("assay: {}: {}\n", path, sent_text(bytes));
  return judged;
}

std::string PackCheck::text() const {
  return fmt::format(
      "every byte as packed; {} of {} judged figures computed again from their samples{}; {}", recomputed.from_samples,
      recomputed.judged,
      recomputed.others.empty() ? std::string() : fmt::format(" (as recorded: {})", fmt::join(recomputed.others, ", ")),
      as_packed ? "the same verdict" : "judged by other terms than the packed verdict, which is not compared");
}

PackCheck check_pack(const std::string& path, std::optional<Floors> floors, bool injected, const Judge& judge,
                     std::span<const std::string> families) {
  const Pack pack = parse_pack(read_pack_file(path), path);
  PackCheck made;
  made.as_packed = !floors && (pack.injected || !injected);
  if (!floors) floors = parse_floors(pack.floors, fs::path(path) / "floors" / pack.floors_name);
  made.judged = std::make_unique<const Judged>(runs_of(pack, path), std::move(*floors), pack.injected || injected,
                                               families, made.as_packed ? rules_of(pack.schema) : CheckRules());
  try {
    made.recomputed = recompute(made.judged->result);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  if (!made.as_packed) require_hardware_of(made.judged->runs, made.judged->floors);
  if (made.as_packed) require_same_verdict(pack, verdict_files(made.judged->result), judge, path);
  return made;
}

}  // namespace assay::report
