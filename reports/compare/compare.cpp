// Pairs, tests, judges and counts; then makes the document.
#include "reports/compare/compare.h"

#include "reports/compare/comparison.h"

#include <cmath>

namespace assay::report {

using namespace comparison;

namespace {

bool one_run_per_side(const Pair& pair) { return pair.base_runs.size() == 1 && pair.head_runs.size() == 1; }

// The noise between runs as seen with one run per side: by family if it has enough cases (families differ), else over
// all cases.
class NoiseByFamily {
 public:
  explicit NoiseByFamily(const std::vector<Pair>& pairs) {
    std::map<std::string, Seen> families;
    Seen all;
    for (const Pair& pair : pairs) {
      if (!pair.headline || !one_run_per_side(pair)) continue;
      const Observation &base = pair.base_runs.front(), &head = pair.head_runs.front();
      for (Seen* seen : {&all, &families[pair.base->record->family]}) {
        seen->logs.push_back(head.log - base.log);
        if (base.within && head.within) seen->within.push_back(within_error(base, head));
      }
    }
    all_ = run_noise(all.logs, all.within);
    for (const auto& [family, seen] : families)
      if (seen.logs.size() >= scatter_cases) families_[family] = run_noise(seen.logs, seen.within);
  }

  const RunNoise& of(const Pair& pair) const {
    const auto found = families_.find(pair.base->record->family);
    return found == families_.end() ? all_ : found->second;
  }

 private:
  struct Seen {
    std::vector<double> logs, within;
  };

  RunNoise all_;
  std::map<std::string, RunNoise> families_;
};

// Runs are the same if their files have the same bytes.
bool same_runs(const RunSet& base, const RunSet& head) {
  const auto contents = [](const RunSet& set) {
    std::multiset<std::uint64_t> all;
    for (const RunData& run : set.runs())
      if (run.content) all.insert(*run.content);
    return all;
  };
  const auto b = contents(base), h = contents(head);
  return !b.empty() && b.size() == base.runs().size() && h.size() == head.runs().size() && b == h;
}

CompareCounts count(const Comparison& all) {
  CompareCounts counts;
  for (const Compared& one : all.compared) {
    if (!one.pair->headline) continue;
    switch (one.judgement.verdict) {
      case Direction::slower: ++counts.slower; break;
      case Direction::faster: ++counts.faster; break;
      case Direction::same: ++counts.same; break;
      case Direction::unknown: ++counts.unknown; counts.unknown_slow += one.judgement.may_be_slower;
    }
  }
  counts.broken = static_cast<int>(all.pairing.broken.size());
  counts.left_out = static_cast<int>(all.pairing.left_out.size());
  return counts;
}

}  // namespace

ExitCode CompareCounts::exit_code() const {
  if (slower + broken + hosts_failed > 0) return ExitCode::failed;
  if (faster + same + unknown == 0 || unknown_slow + hosts_unsure > 0) return ExitCode::no_data;
  return ExitCode::ok;
}

Comparison comparison::compare_sides(const RunSet& base, const RunSet& head, double tolerance) {
  Comparison all{.base = base,
                 .head = head,
                 .pairing = pair_sides(base, head),
                 .environment = environment_difference(base, head),
                 .compared = {},
                 .same_runs = same_runs(base, head),
                 .counts = {}};
  if (auto clock = clock_difference(all.pairing)) all.environment.fields.push_back(std::move(*clock));
  const NoiseByFamily noise(all.pairing.pairs);
  std::vector<Change*> tested;
  all.compared.reserve(all.pairing.pairs.size());
  for (const Pair& pair : all.pairing.pairs) {
    Compared one{&pair, {}, {}};
    if (all.same_runs)
      one.change = {.ratio = 1, .ci95 = Interval{1, 1}, .noise = Noise::none};
    else
      one.change = change_of(pair.base_runs, pair.head_runs, pair.metric->better, noise.of(pair));
    all.compared.push_back(std::move(one));
    if (pair.headline) tested.push_back(&all.compared.back().change);
  }
  adjust(tested);
  for (Compared& one : all.compared)
    if (one.pair->headline) one.judgement = judge(one.change, tolerance);
  all.counts = count(all);
  return all;
}

CompareResult compare(const RunSet& base, const RunSet& head, const CompareOptions& options) {
  const Comparison all = compare_sides(base, head, options.tolerance);
  return {comparison_document(all, options), all.counts};
}

}  // namespace assay::report
