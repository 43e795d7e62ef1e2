// Simulates fleets, learns floors from their records as `assay floors learn` does, and judges new machines as `assay
// check` does: how often a healthy one misses, and how often a loss of the stated size is found. Prints the table of
// docs/floors.md. With --short, only enough of it for a test. Exit code 1 if a bound is broken.
#include "harness/core/rng.h"
#include "harness/fitness/floors/judge.h"
#include "harness/fitness/floors/learn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::fitness {
namespace {

constexpr double median_figure = 1e12;
constexpr double half_width = 0.003;  // of a run's interval
constexpr std::array<double, 3> rates{0.05, 0.01, 0.001};

struct Kind {
  std::size_t machines = 12, runs = 3;
  double between = 0.01, within = 0.01;  // standard deviations
  bool heavy = false;                    // Student's t with 5 degrees of freedom, for machines and for runs
  std::size_t bad = 0;                   // machines that are 8 to 30 % slower
  bool uneven = false;                   // one to 2 runs - 1 of a machine
  std::size_t cases = 1;                 // of which half the variance is common
  bool same_machine = false;
};

// Numbers of one fleet, in order.
class Noise {
 public:
  Noise(std::uint64_t seed, bool heavy) : random_(seed, "floors"), heavy_(heavy) {}

  double uniform() { return random_.uniform(used_++); }
  // Returns a deviate with standard deviation 1.
  double deviate() {
    const double normal = random_.normal(used_++);
    if (!heavy_) return normal;
    double squares = 0;
    for (int i = 0; i < 5; ++i) {
      const double other = random_.normal(used_++);
      squares += other * other;
    }
    return normal / std::sqrt(squares / 5) * std::sqrt(3.0 / 5);
  }

 private:
  Rng random_;
  bool heavy_;
  std::uint64_t used_ = 0;
};

// Effects on each case: a common part and its own.
std::vector<double> effects(const Kind& kind, double sigma, Noise& noise) {
  const double common = noise.deviate();
  std::vector<double> all(kind.cases);
  for (double& each : all) each = sigma * (kind.cases == 1 ? common : std::sqrt(0.5) * (common + noise.deviate()));
  return all;
}

std::string key_of(std::size_t number) { return fmt::format("gemm/m={}", number); }

RunData run_of(const Kind& kind, std::size_t machine, const std::vector<double>& level, std::size_t number,
               Noise& noise) {
  RunData run;
  run.dir = fmt::format("run-{}", number);
  run.run = {{"started", fmt::format("{:08}", number)}};
  run.content = number + 1;
  const std::vector<double> own = effects(kind, kind.within, noise);
  for (std::size_t i = 0; i < kind.cases; ++i) {
    Record record;
    record.key = key_of(i);
    record.family = "gemm";
    record.ranks.push_back({0, fmt::format("host-{}", machine), "", {}});
    Metric metric;
    metric.name = "throughput";
    metric.unit = "FLOP/s";
    metric.value = median_figure * std::exp(level[i] + own[i]);
    metric.ci95 = Interval{*metric.value * std::exp(-half_width), *metric.value * std::exp(half_width)};
    record.metrics.push_back(metric);
    run.records.push_back(record);
    run.lines.push_back(static_cast<int>(i) + 1);
  }
  return run;
}

std::vector<double> level_of(const Kind& kind, Noise& noise) { return effects(kind, kind.between, noise); }

std::vector<RunData> fleet_of(const Kind& kind, const std::vector<double>& same, Noise& noise) {
  std::vector<RunData> runs;
  for (std::size_t m = 0; m < kind.machines; ++m) {
    std::vector<double> level = kind.same_machine ? same : level_of(kind, noise);
    if (m < kind.bad) {
      const double loss = std::log1p(-0.08 - 0.22 * noise.uniform());
      for (double& each : level) each += loss;
    }
    const auto count = kind.uneven
                           ? 1 + static_cast<std::size_t>(noise.uniform() * static_cast<double>(2 * kind.runs - 1))
                           : kind.runs;
    for (std::size_t r = 0; r < count; ++r) runs.push_back(run_of(kind, m, level, runs.size(), noise));
  }
  return runs;
}

// Shares of one fleet each, and their mean with its standard error.
class Shares {
 public:
  void add(double share) { all_.push_back(share); }
  bool none() const { return all_.empty(); }
  double mean() const {
    double sum = 0;
    for (const double each : all_) sum += each;
    return sum / static_cast<double>(all_.size());
  }
  double error() const {
    double squares = 0;
    for (const double each : all_) squares += (each - mean()) * (each - mean());
    const double n = static_cast<double>(all_.size());
    return n < 2 ? 1 : std::sqrt(squares / (n - 1) / n);
  }
  double median() const { return assay::median(all_); }
  std::string text(int places) const {
    return none() ? "–" : fmt::format("{:.{}f} ± {:.{}f} %", 100 * mean(), places, 100 * error(), places);
  }

 private:
  std::vector<double> all_;
};

struct Found {
  std::array<Shares, rates.size()> misses;  // of healthy runs of new machines, any floor of the file
  Shares below, loss, found;                // at the last rate: floor below the median, loss stated, and found
  Shares said;                              // whether a machine was said to stand apart
  double lowest = 1;                        // floor over the true median, of all fleets and rates
};

bool passes(const Metric& metric, double limit, double factor, Outcome wanted) {
  return judge(*metric.value * factor, scaled(metric.ci95, factor), Bound::at_least, limit) == wanted;
}

Found simulate(const Kind& kind, std::size_t fleets, std::size_t tried) {
  Found all;
  for (std::size_t f = 0; f < fleets; ++f) {
    Noise noise(f, kind.heavy);
    const std::vector<double> same(kind.cases, 0);
    const RunSet runs(fleet_of(kind, same, noise));
    std::vector<RunData> fresh;
    for (std::size_t i = 0; i < tried; ++i)
      fresh.push_back(run_of(kind, i, kind.same_machine ? same : level_of(kind, noise), i, noise));
    for (std::size_t r = 0; r < rates.size(); ++r) {
      LearnOptions options;
      options.false_fail = rates[r];
      options.same_machine = kind.same_machine;
      options.outliers = Outliers::leave_out;
      const LearnedFloors learned = learn(runs, options);
      const bool last = r + 1 == rates.size();
      if (last) all.said.add(learned.apart.empty() ? 0 : 1);
      if (learned.floors() < kind.cases) continue;
      std::size_t misses = 0, found = 0;
      const LearnedFloor& first = learned.cases.front();
      for (const RunData& run : fresh) {
        bool missed = false;
        for (const LearnedFloor& floor : learned.cases) {
          all.lowest = std::min(all.lowest, *floor.limit / median_figure);
          for (const Record& record : run.records)
            if (record.key == floor.like->record->key)
              missed = missed || !passes(record.metrics.front(), *floor.limit, 1, Outcome::pass);
        }
        misses += missed;
        found += passes(run.records.front().metrics.front(), *first.limit, 1 - *first.loss, Outcome::fail);
      }
      all.misses[r].add(static_cast<double>(misses) / static_cast<double>(tried));
      if (!last) continue;
      all.below.add(1 - *first.limit / first.median);
      all.loss.add(*first.loss);
      all.found.add(static_cast<double>(found) / static_cast<double>(tried));
    }
  }
  return all;
}

std::string name_of(const Kind& kind) {
  std::string name = kind.same_machine ? fmt::format("{} runs of one machine", kind.runs)
                     : kind.uneven     ? fmt::format("{} x 1 to {}", kind.machines, 2 * kind.runs - 1)
                                       : fmt::format("{} x {}", kind.machines, kind.runs);
  if (kind.heavy) name += ", heavy tails";
  if (kind.bad > 0) name += fmt::format(", {} bad", kind.bad);
  if (kind.cases > 1) name += fmt::format(", {} cases", kind.cases);
  return name;
}

bool broken = false;

void bound(bool held, const std::string& what) {
  if (held) return;
  broken = true;
  fmt::print(stderr, "floors_simulate: broken bound: {}\n", what);
}

void run(const std::vector<Kind>& kinds, std::size_t fleets, std::size_t tried) {
  fmt::print(
      "| machines x runs | between, within | misses at 5 % | at 1 % | at 0.1 % | floor below the median | finds a "
      "loss of | found | asked |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Kind& kind : kinds) {
    const Found found = simulate(kind, fleets, tried);
    const std::string name = name_of(kind);
    const auto percent = [](const Shares& shares, double value) {
      return shares.none() ? std::string("–") : fmt::format("{:.1f} %", 100 * value);
    };
    fmt::print(
        "| {} | {:.1f} %, {:.1f} % | {} | {} | {} | {} | {} | {} | {:.1f} % |\n", name,
        kind.same_machine ? 0 : 100 * kind.between, 100 * kind.within, found.misses[0].text(2), found.misses[1].text(2),
        found.misses[2].text(3), percent(found.below, found.below.none() ? 0 : found.below.median()),
        percent(found.loss, found.loss.none() ? 0 : found.loss.median()), found.found.text(1), 100 * found.said.mean());
    for (std::size_t r = 0; r < rates.size(); ++r)
      if (const Shares& shares = found.misses[r]; !shares.none())
        bound(shares.mean() <= rates[r] + 3 * shares.error(),
              fmt::format("{}: {:.3f} % miss at {:.1f} %", name, 100 * shares.mean(), 100 * rates[r]));
    if (!found.found.none())
      bound(found.found.mean() >= 0.9 - 3 * found.found.error(), name + ": a loss of the stated size is missed");
    bound(found.lowest > 0.55, fmt::format("{}: a floor at {:.2f} of the median", name, found.lowest));
  }
}

}  // namespace
}  // namespace assay::fitness

int main(int argc, char** argv) {
  using assay::fitness::Kind;
  const bool is_short = argc == 2 && std::string_view(argv[1]) == "--short";
  if (argc > 1 && !is_short) {
    fmt::print(stderr, "usage: floors_simulate [--short]\n");
    return 2;
  }
  std::vector<Kind> kinds = {{12, 3},
                             {12, 3, 0.01, 0.01, true},
                             {40, 2, 0.01, 0.01, false, 2},
                             {.machines = 1, .runs = 10, .same_machine = true}};
  if (!is_short)
    kinds = {{4, 3},
             {6, 1},
             {6, 1, 0.01, 0.01, true},
             {10, 1, 0.01, 0.01, true},
             {6, 5, 0.002, 0.01},
             {6, 5, 0.01, 0.002},
             {12, 1},
             {12, 3},
             {12, 3, 0.02, 0.005},
             {12, 3, 0.005, 0.02},
             {12, 3, 0.01, 0.01, false, 0, true},
             {40, 2},
             {100, 1},
             {12, 1, 0.01, 0.01, true},
             {12, 3, 0.01, 0.01, true},
             {40, 2, 0.01, 0.01, true},
             {100, 1, 0.01, 0.01, true},
             {20, 3, 0.01, 0.01, false, 1},
             {40, 2, 0.01, 0.01, false, 2},
             {100, 1, 0.01, 0.01, false, 5},
             {40, 2, 0.01, 0.01, true, 2},
             {20, 2, 0.01, 0.01, false, 0, false, 10},
             {20, 2, 0.01, 0.01, true, 0, false, 10},
             {.machines = 1, .runs = 5, .same_machine = true},
             {.machines = 1, .runs = 10, .same_machine = true},
             {.machines = 1, .runs = 10, .heavy = true, .same_machine = true},
             {.machines = 1, .runs = 30, .same_machine = true}};
  assay::fitness::run(kinds, is_short ? 100 : 1000, is_short ? 100 : 200);
  return assay::fitness::broken ? 1 : 0;
}
