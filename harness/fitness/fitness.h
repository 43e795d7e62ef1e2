// Whether something is fit: a machine, a host, a check of it, a figure under a floor. Every judge says so in this enum;
// documents have their own words for it.
#pragma once

#include "harness/core/error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace assay {

// From best to worst: what is unknown is no pass, and nothing that was seen to fail is hidden by it.
enum class Fitness { pass, unknown, unsure, fail };
constexpr auto words(Fitness) { return std::to_array<std::string_view>({"pass", "unknown", "unsure", "fail"}); }

constexpr Fitness worst(Fitness a, Fitness b) { return std::max(a, b); }

// The words of one document, in the order of Fitness.
using FitnessWords = std::array<std::string_view, 4>;
constexpr std::string_view name_of(Fitness fitness, const FitnessWords& words) {
  return words[static_cast<std::size_t>(fitness)];
}

// 0 fit, 1 not fit, 3 not enough to say.
constexpr ExitCode exit_code(Fitness fitness) {
  return fitness == Fitness::pass ? ExitCode::ok : fitness == Fitness::fail ? ExitCode::failed : ExitCode::no_data;
}

// Nagios' plugins: OK, UNKNOWN, WARNING and CRITICAL.
constexpr int nagios_code(Fitness fitness) { return std::array{0, 3, 1, 2}[static_cast<std::size_t>(fitness)]; }
inline constexpr FitnessWords nagios_words = {"OK", "UNKNOWN", "WARNING", "CRITICAL"};

// Kubernetes' node problem detector: OK, NonOK and Unknown. An unsure finding is no reason to take a node away: OK.
constexpr int npd_code(Fitness fitness) { return std::array{0, 2, 0, 1}[static_cast<std::size_t>(fitness)]; }

}  // namespace assay
