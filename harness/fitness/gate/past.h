// What earlier gates of a host have found, so that a suspicion that returns is seen: one file per host, of bounded
// size.
#pragma once

#include "harness/fitness/gate/decision.h"

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <string>

namespace assay::gate {

struct Past {
  std::size_t suspect = 0, drain = 0;  // gates of the past days
  // "suspect 3 times in the past 7 days"; empty if there was nothing.
  std::string text() const;
};

inline constexpr int past_days = 7;

// The suspect and drain verdicts of the past `seconds`. Lines that are not understood are skipped; a file that is
// absent gives nothing. Throws Error if it cannot be read.
Past read_past(const std::filesystem::path& file, std::time_t now, double seconds = past_days * 86400.0);
// Appends what was found, as a verdict of suspect or drain; nothing if there are only remarks. `instead` says what
// became of a verdict that was not carried out ("observed", "withheld"). Throws Error if it cannot be written.
void remember(const std::filesystem::path& file, std::time_t now, const Decision& decision, const Catalogue& catalogue,
              const std::string& instead = {});

}  // namespace assay::gate
