#include "workloads/training/scoring.h"

#include "harness/core/configs.h"
#include "harness/json/json.h"
#include "harness/statistics/distributions.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::training {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t min_points = 10;
constexpr double confidence = 0.99;

}  // namespace

Score olympic_score(std::span<const QualityRun> runs) {
  Score score;
  std::vector<double> times;
  for (const QualityRun& run : runs) {
    score.missed += run.reached ? 0 : 1;
    if (run.reached) times.push_back(run.seconds);
  }
  const bool olympic = runs.size() >= 3;
  if (runs.empty() || score.missed > (olympic ? 1 : 0)) {
    score.rule = fmt::format("{} of {} runs missed the target", score.missed, runs.size());
    return score;
  }
  if (!olympic) {
    score.seconds = mean(times);
    score.rule = runs.size() == 1 ? "one run" : "mean of 2 runs";
    return score;
  }
  std::ranges::sort(times);
  times.erase(times.begin());               // the fastest
  if (score.missed == 0) times.pop_back();  // the slowest, unless it is the one that missed
  score.seconds = mean(times);
  score.rule = fmt::format("olympic mean of {} runs", runs.size());
  return score;
}

Convergence read_convergence(const fs::path& file) {
  const auto read = [](const Cursor& root) {
    Convergence convergence;
    if (const auto at = root.need("model")) convergence.model = at->text().value_or("");
    if (const auto at = root.find("description")) at->text();
    if (const auto at = root.need("source")) convergence.source = at->text().value_or("");
    if (const auto at = root.need("global_batch")) convergence.global_batch = at->integer(1).value_or(0);
    if (const auto at = root.need("points")) {
      for (const Cursor& point : at->elements()) {
        if (!point.object()) continue;
        point.only(std::vector<std::string>{"seed", "samples"});
        if (const auto seed = point.need("seed")) seed->integer(0);
        if (const auto samples = point.need("samples"))
          if (const auto count = samples->integer(1)) convergence.samples.push_back(static_cast<double>(*count));
      }
      if (convergence.samples.size() < min_points) at->error(fmt::format("needs at least {} points", min_points));
    }
    return convergence;
  };
  return read_strictly(file, 1, {"schema", "model", "description", "global_batch", "source", "points"}, read);
}

std::optional<Convergence> find_convergence(const std::string& model) {
  const fs::path file = configs_dir() / "convergence" / (model + ".json");
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  return read_convergence(file);
}

ConvergenceVerdict judge_convergence(std::span<const QualityRun> runs, std::int64_t global_batch,
                                     const std::optional<Convergence>& reference) {
  ConvergenceVerdict verdict;
  if (!reference) {
    verdict.reason = "no reference points";
    return verdict;
  }
  if (reference->global_batch != global_batch) {
    verdict.reason =
        fmt::format("the reference has a global batch of {}, not {}", reference->global_batch, global_batch);
    return verdict;
  }
  if (runs.size() < min_runs_judged) {
    verdict.reason = fmt::format("{} runs; at least {} are needed", runs.size(), min_runs_judged);
    return verdict;
  }
  std::vector<double> samples;
  for (const QualityRun& run : runs) samples.push_back(static_cast<double>(run.samples));
  const auto n = static_cast<double>(samples.size());
  const auto m = static_cast<double>(reference->samples.size());
  const double degrees = n + m - 2;
  const double deviation = std::sqrt((squared_deviations(samples) + squared_deviations(reference->samples)) / degrees);
  const double bound = student_quantile(degrees, confidence) * deviation * std::sqrt(1 / n + 1 / m);
  const double expected = mean(reference->samples);
  verdict.mean = mean(samples);
  verdict.low = expected - bound;
  verdict.high = expected + bound;
  verdict.verdict = verdict.mean < verdict.low    ? Verdict::too_fast
                    : verdict.mean > verdict.high ? Verdict::too_slow
                                                  : Verdict::as_expected;
  verdict.reason =
      fmt::format("{:.0f} samples on average; {:.0f} to {:.0f} are expected", verdict.mean, verdict.low, verdict.high);
  return verdict;
}

}  // namespace assay::training
