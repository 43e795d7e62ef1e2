// Scores of quality runs: the olympic mean, and whether a model converges as fast as its reference.
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
  std::optional<double> seconds;  // null where the result is invalid
  int missed = 0;
  std::string rule;  // in words: "olympic mean of 5 runs"
};

// MLPerf's rule: of three runs and more the fastest and the slowest are dropped and the rest averaged; a run that
// missed the target counts as the slowest, and two of them invalidate the result. Of one or two runs the plain mean,
// which no run may miss.
Score olympic_score(std::span<const QualityRun> runs);

// Reference points: what samples a model took to its target, by seed, on a machine that is trusted.
// {"schema":1,"model":"gpt2-tiny","global_batch":32,"source":"...","points":[{"seed":0,"samples":16800}, ...]}
struct Convergence {
  std::string model;
  std::int64_t global_batch = 0;
  std::string source;
  std::vector<double> samples;  // one a seed
};
// Throws UsageError that lists every error of the file; at least 10 points are asked for.
Convergence read_convergence(const std::filesystem::path& file);
// configs/convergence/MODEL.json, where there is one.
std::optional<Convergence> find_convergence(const std::string& model);

enum class Verdict { as_expected, too_fast, too_slow, not_judged };
struct ConvergenceVerdict {
  Verdict verdict = Verdict::not_judged;
  std::string reason;  // why not judged, or the figures
  double mean = 0;     // of the runs, samples
  double low = 0;      // between these it is as expected
  double high = 0;
};
inline constexpr std::size_t min_runs_judged = 5;
// Student's t of two samples of equal variance, the reference's deviation pooled with the runs': a mean beyond the
// one-sided 99 % bound on either side stands out. Runs that missed count with the samples they trained on.
ConvergenceVerdict judge_convergence(std::span<const QualityRun> runs, std::int64_t global_batch,
                                     const std::optional<Convergence>& reference);

}  // namespace assay::training
