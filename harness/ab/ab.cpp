#include "harness/ab/ab.h"

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/core/text.h"

#include <algorithm>
#include <cmath>

namespace assay::ab {

namespace {

void require(bool condition, const char* what, double value) {
  if (!condition) throw UsageError(fmt::format("{} is {}", what, value));
}

Outcome outcome_of(const PairedTest& test) {
  const Interval interval = test.interval();
  return {test.verdict(), std::exp(test.estimate()), std::exp(interval.low), std::exp(interval.high), test.pairs()};
}

// One case while it is measured.
struct Judged {
  Figure first;  // of A's warm-up
  PairedTest test;
  std::optional<Outcome> settled = {};
  std::array<std::vector<double>, 2> values = {};  // of A and B
};

const Figure* find(const std::vector<Figure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &Figure::name);
  return found == figures.end() ? nullptr : &*found;
}

// Throws UsageError: what makes this figure of a side unfit to compare with A's first one.
double checked(const Figure* figure, const Figure& first, char side) {
  const std::string name = in_quotes(first.name);
  if (!figure) throw UsageError(fmt::format("{} did not print {} this time", side, name));
  if (!(figure->value > 0) || !std::isfinite(figure->value))
    throw UsageError(fmt::format("{}: {} is {}: only figures above 0 have a ratio", side, name, figure->value));
  if (figure->unit != first.unit || figure->better != first.better)
    throw UsageError(fmt::format("{}: {} has unit {} and is better when {}, but A's first one {} and {}", side, name,
                                 in_quotes(figure->unit), figure->better == Better::lower ? "lower" : "higher",
                                 in_quotes(first.unit), first.better == Better::lower ? "lower" : "higher"));
  return figure->value;
}

Outcome combined(const std::vector<Case>& cases, std::size_t pairs) {
  Outcome all{Direction::same, 0, 0, 0, pairs};
  const auto any = [&](Direction verdict) {
    return std::ranges::any_of(cases, [&](const Case& one) { return one.outcome.verdict == verdict; });
  };
  for (const Direction verdict : {Direction::faster, Direction::unknown, Direction::slower})
    if (any(verdict)) all.verdict = verdict;
  const double share = 1 / static_cast<double>(cases.size());
  for (const Case& one : cases) {
    all.ratio += share * std::log(one.outcome.ratio);
    all.low += share * std::log(one.outcome.low);
    all.high += share * std::log(one.outcome.high);
  }
  return {all.verdict, std::exp(all.ratio), std::exp(all.low), std::exp(all.high), pairs};
}

class Comparison {
 public:
  Comparison(const Side& a, const Side& b, const Options& options)
      : sides_{&a, &b},
        options_(options),
        start_(Clock::now()),
        // More than a century would overflow the clock.
        deadline_(start_ + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(std::min(options.budget, 3e9)))) {}

  Result run() {
    if (warm_up()) measure();
    result_.seconds = seconds_since(start_);
    std::size_t pairs = 0;
    for (Judged& one : cases_) {
      if (!one.settled) one.settled = outcome_of(one.test);
      pairs = std::max(pairs, one.settled->pairs);
      Case shown{one.first.name, one.first.unit, 0, 0, *one.settled};
      if (!one.values[0].empty()) shown.a = median(one.values[0]), shown.b = median(one.values[1]);
      result_.cases.push_back(std::move(shown));
    }
    if (!result_.cases.empty()) result_.all = combined(result_.cases, pairs);
    return std::move(result_);
  }

 private:
  // False if there was not time enough.
  bool figures_of(int side, std::vector<Figure>& figures) {
    figures = (*sides_[static_cast<std::size_t>(side)])(deadline_);
    if (figures.empty()) result_.ended = Clock::now() < deadline_ ? Ended::interrupted : Ended::budget;
    return !figures.empty();
  }

  bool warm_up() {
    std::vector<Figure> a, b;
    if (!figures_of(0, a) || !figures_of(1, b)) return false;
    for (const auto* figures : {&a, &b})
      for (const Figure& one : *figures)
        if (find(*figures, one.name) != &one)
          throw UsageError(fmt::format("{} has several figures {}", figures == &a ? 'A' : 'B', in_quotes(one.name)));
    const auto common = std::ranges::count_if(a, [&](const Figure& one) { return find(b, one.name); });
    if (common == 0)
      throw UsageError(fmt::format("A and B have no case in common: A has {}, B has {}", in_quotes(a.front().name),
                                   in_quotes(b.front().name)));
    for (const Figure& one : a) {
      const Figure* const other = find(b, one.name);
      if (!other) {
        result_.one_sided.push_back(one.name);
        continue;
      }
      checked(&one, one, 'A');
      checked(other, one, 'B');
      cases_.push_back({one, PairedTest(options_.tolerance, options_.error / static_cast<double>(common))});
    }
    for (const Figure& one : b)
      if (!find(a, one.name)) result_.one_sided.push_back(one.name);
    return true;
  }

  void measure() {
    const Rng order(options_.seed, "ab order");
    double shortest = 0;
    for (std::uint64_t pair = 0; !all_settled(); ++pair) {
      const Clock::time_point begun = Clock::now();
      if (std::chrono::duration<double>(deadline_ - begun).count() <= shortest) {
        result_.ended = Ended::budget;
        return;
      }
      std::array<std::vector<Figure>, 2> figures;
      const int first = static_cast<int>(order.below(pair, 2));
      for (const int side : {first, 1 - first})
        if (!figures_of(side, figures[static_cast<std::size_t>(side)])) return;
      const double seconds = seconds_since(begun);
      shortest = pair == 0 ? seconds : std::min(shortest, seconds);
      judge(figures);
    }
  }

  void judge(const std::array<std::vector<Figure>, 2>& figures) try {
    for (Judged& one : cases_) {
      const double a = checked(find(figures[0], one.first.name), one.first, 'A');
      const double b = checked(find(figures[1], one.first.name), one.first, 'B');
      if (one.settled) continue;
      one.values[0].push_back(a);
      one.values[1].push_back(b);
      one.test.add(one.first.better == Better::higher ? std::log(b) - std::log(a) : std::log(a) - std::log(b));
      if (one.test.verdict() != Direction::unknown) one.settled = outcome_of(one.test);
    }
  } catch (const UsageError& error) {
    throw Error(error.what());  // the warm-up could be compared
  }

  bool all_settled() const {
    return std::ranges::all_of(cases_, [](const Judged& one) { return one.settled.has_value(); });
  }

  std::array<const Side*, 2> sides_;
  Options options_;
  Clock::time_point start_, deadline_;
  std::vector<Judged> cases_;
  Result result_;
};

}  // namespace

Result run(const Side& a, const Side& b, const Options& options) {
  require(options.tolerance > 0 && options.tolerance < 1, "the tolerance must be above 0 and below 100 %: it",
          options.tolerance);
  require(options.error > 0 && options.error < 1, "the error must be above 0 and below 100 %: it", options.error);
  require(options.budget > 0, "the budget must be above 0 s: it", options.budget);
  return Comparison(a, b, options).run();
}

}  // namespace assay::ab
