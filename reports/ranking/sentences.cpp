#include "harness/core/text.h"
#include "harness/core/units.h"
#include "reports/ranking/ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::ranking {

namespace {

std::string percent(double log) { return format_percent(std::expm1(log)); }

constexpr double equal = 0.01;  // no number of machines would tell smaller differences apart

// "a3 and p5".
std::string names_of(const Ranking& ranking, const std::vector<const Row*>& rows) {
  std::vector<std::string> names;
  for (const Row* row : rows) names.push_back(ranking.kinds[row->kind].name);
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// Why a gap between two rows does not count, and what would show whether it is real.
std::string doubt(const RankedCase& ranked, const Row& a, const Row& b, double gap) {
  const double needed = decisive_difference(a.side, b.side, ranked.spread, ranked.rows.size());
  if (ranked.spread.freedom > 0)
    return fmt::format("below {} is no finding, as machines of a kind differ by {} (standard deviation)",
                       percent(needed), format_percent(ranked.spread.sigma));
  std::string text = fmt::format("one machine each: below {} is no finding", format_percent(undecided_difference));
  if (std::expm1(needed) > 1.05 * undecided_difference)
    text += fmt::format(" ({} with the noise of these runs)", percent(needed));
  if (gap > equal) text += fmt::format("; about {} machines of each would decide", machines_to_decide(gap));
  return text;
}

std::string fastest(const Ranking& ranking, const RankedCase& ranked) {
  std::vector<const Row*> first;
  for (const Row& row : ranked.rows)
    if (row.may_be_fastest) first.push_back(&row);
  const Row &best = ranked.rows[0], &second = ranked.rows[1];
  const std::string& name = ranking.kinds[best.kind].name;
  const double gap = best.side.mean() - second.side.mean();
  const std::string ahead = fmt::format("{} ahead of {}", percent(gap), ranking.kinds[second.kind].name);
  if (first.size() == 1)
    return fmt::format("Fastest: {}, {}{}.", name, ahead, ranked.spread.freedom > 0 ? "" : " (one machine each)");
  return fmt::format("Fastest: a tie of {}: {} is {}; {}.", names_of(ranking, first), name, ahead,
                     doubt(ranked, best, second, gap));
}

// "Cheapest (on demand): p4de, 9 % below p5; it stays cheapest while p5 costs more than 49.9 USD/h."; empty unless at
// least two kinds have a price on this basis.
std::string cheapest(const Ranking& ranking, const RankedCase& ranked, Basis basis) {
  std::vector<const Row*> rows;
  for (const Row& row : ranked.rows)
    if (usd_of(row, basis)) rows.push_back(&row);
  if (rows.size() < 2) return {};
  const auto log = [&](const Row* row) { return usd_of(*row, basis)->log; };
  std::ranges::stable_sort(rows, {}, log);
  const Row &best = *rows[0], &second = *rows[1];
  const std::string &name = ranking.kinds[best.kind].name, &rival = ranking.kinds[second.kind].name;
  const double gap = log(&second) - log(&best);
  std::vector<const Row*> first;
  for (const Row* row : rows)
    if (row == &best ||
        log(row) - log(&best) < decisive_difference(best.side, row->side, ranked.spread, ranked.rows.size()))
      first.push_back(row);
  // A rival's cost follows its price, so at this price both cost the same.
  const std::string until =
      fmt::format("{} costs more than {:.1f} USD/h", rival, *usd_of(second, basis)->price.usd * std::exp(-gap));
  const std::string below = fmt::format("{} below {}", format_percent(-std::expm1(-gap)), rival);
  if (first.size() == 1)
    return fmt::format("Cheapest ({}): {}, {}; it stays cheapest while {}.", name_of(basis), name, below, until);
  return fmt::format("Cheapest ({}): a tie of {}: {} is {} (while {}); {}.", name_of(basis), names_of(ranking, first),
                     name, below, until, doubt(ranked, best, second, gap));
}

std::string unpriced(const Ranking& ranking, const RankedCase& ranked) {
  std::vector<std::string> names;
  for (const Row& row : ranked.rows)
    if (row.usd.empty()) names.push_back(ranking.kinds[row.kind].name);
  if (names.empty() || names.size() == ranked.rows.size()) return {};
  return fmt::format("Not ranked by cost, without a price: {}.", first_few(names));
}

}  // namespace

std::vector<std::string> sentences_of(const Ranking& ranking, const RankedCase& ranked) {
  std::vector<std::string> sentences{fastest(ranking, ranked)};
  for (const Basis basis : all_bases)
    if (std::string text = cheapest(ranking, ranked, basis); !text.empty()) sentences.push_back(std::move(text));
  if (std::string text = unpriced(ranking, ranked); !text.empty()) sentences.push_back(std::move(text));
  if (!ranked.left_out.empty())
    sentences.push_back(fmt::format("Not ranked: {}.", first_few(ranked.left_out, 5, "; ")));
  return sentences;
}

}  // namespace assay::report::ranking
