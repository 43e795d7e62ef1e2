// Scores quality runs: the olympic mean, and whether a model converges as fast as its reference.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::training {

// One seeded run.
struct QualityRun {
  std::uint64_t seed = 0;
  bool reached = false;      // the target
  double seconds = 0;        // from run_start to run_stop
  std::int64_t samples = 0;  // trained on
};

struct Score {
  std::optional<double> seconds;  // absent if the result is invalid
  int missed = 0;
  std::string rule;  // in words: "olympic mean of 5 runs"
};

// MLPerf's rule: of three or more runs, drops the fastest and the slowest and averages the rest. A run that missed the
// target counts as the slowest; two such runs invalidate the result. With one or two runs: the plain mean, and no run
// may miss.
Score olympic_score(std::span<const QualityRun> runs);

// Reference points: the samples that a model needed to reach its target, by seed, on a trusted machine.
// {"schema":1,"model":"gpt2-tiny","global_batch":32,"source":"...","points":[{"seed":0,"samples":16800}, ...]}
struct Convergence {
  std::string model;
  std::int64_t global_batch = 0;
  std::string source;
  std::vector<double> samples;  // one per seed
};
// Throws UsageError that lists all errors of the file; needs at least 10 points.
Convergence read_convergence(const std::filesystem::path& file);
// configs/convergence/MODEL.json, if it exists.
std::optional<Convergence> find_convergence(const std::string& model);

enum class Verdict { as_expected, too_fast, too_slow, not_judged };
constexpr auto words(Verdict) {
  return std::to_array<std::string_view>({"as expected", "too fast", "too slow", "not judged"});
}
struct ConvergenceVerdict {
  Verdict verdict = Verdict::not_judged;
  std::string reason;  // why not judged, or the figures
  double mean = 0;     // samples per run
  double low = 0;      // from low to high: as expected
  double high = 0;
};
inline constexpr std::size_t min_runs_judged = 5;
// Student's t-test of two samples with equal variance, pooling the deviations of reference and runs: a mean beyond the
// one-sided 99 % bound is too fast or too slow. Runs that missed count with the samples that they used.
ConvergenceVerdict judge_convergence(std::span<const QualityRun> runs, std::int64_t global_batch,
                                     const std::optional<Convergence>& reference);

}  // namespace assay::training
