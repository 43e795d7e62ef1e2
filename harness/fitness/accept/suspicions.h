// Remembers what acceptances suspected without being sure, so that a suspicion that returns counts.
#pragma once

#include "harness/fitness/accept/state.h"
#include "harness/fitness/cluster/cluster.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::accept {

inline constexpr int suspicious_days = 90;
inline constexpr std::size_t suspicious_times = 3;

// A part of a host that this acceptance suspects, as did earlier ones of the past days, fails with the third of them.
// Remembers what this one suspects, once however often it is resumed. What cannot be read or written is noted.
void escalate_over_time(std::vector<fitness::AcceptedHost>& hosts, const State& state,
                        const std::filesystem::path& file, std::vector<std::string>& notes);

}  // namespace assay::accept
