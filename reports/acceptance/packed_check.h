// Judging runs with a pack: written into one, or read from one and judged again.
#pragma once

#include "harness/fitness/floors/pack.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::report {

// Runs, the floors they were judged by, and the judgement, which refers to both.
struct Judged {
  Judged(std::vector<RunData> judged_runs, fitness::Floors by, bool injected, std::span<const std::string> families,
         const fitness::CheckRules& rules = {});

  fitness::Floors floors;
  RunSet runs;
  fitness::CheckResult result;
};

// Throws UsageError unless a pack can be written there: in place of nothing or of a whole pack. The name may be that of
// another file by mistake.
void require_place_for_pack(const std::filesystem::path& path);

// Judges the runs of `dirs` as whoever reads the pack will, and writes it to `path`. `injected`: records with injected
// faults count as measurements. Throws UsageError and Error as pack_run() does, and Error if the pack is too large.
std::unique_ptr<const Judged> check_into_pack(std::vector<std::filesystem::path> dirs,
                                              const std::filesystem::path& floors_file, bool injected,
                                              fitness::Judge judge, const std::string& path,
                                              std::span<const std::string> families);

struct PackCheck {
  std::unique_ptr<const Judged> judged;
  fitness::Recomputed recomputed;
  bool as_packed = true;  // on the terms of the packed verdict, which is the same

  // "every byte as packed; ...".
  std::string text() const;
};
// Judges the pack in `path` by its own floors, or by those given. Throws UsageError if it is no pack, Error if anything
// in it was changed, its verdict included.
PackCheck check_pack(const std::string& path, std::optional<fitness::Floors> floors, bool injected,
                     const fitness::Judge& judge, std::span<const std::string> families);

}  // namespace assay::report
