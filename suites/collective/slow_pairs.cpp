#include "suites/collective/slow_pairs.h"

#include "harness/core/units.h"
#include "harness/measure/outliers.h"
#include "harness/measure/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::collective {

namespace {

constexpr std::size_t most_named = 20;
constexpr double interval_sigmas = 1.96;  // half of a 95 % interval

// How slow something is: times the median of its kind; 0 where it is not slow.
class Judge {
 public:
  explicit Judge(const std::vector<RoundResult>& all) {
    std::vector<double> medians, halves;
    for (const RoundResult& one : all) {
      medians.push_back(one.median);
      if (std::isfinite(one.high - one.low)) halves.push_back((one.high - one.low) / 2);
    }
    if (medians.size() < 3) return;
    others_ = robust(medians);
    // A MAD is 0.6745 standard deviations.
    if (!halves.empty()) others_.mad = std::max(others_.mad, 0.6745 * median(halves) / interval_sigmas);
    enough_ = others_.median > 0;
  }
  double times_slow(const RoundResult& one) const {
    if (!enough_ || one.median < others_.median || !is_outlier(one.median, others_)) return 0;
    const bool sure = std::isnan(one.low) || one.low >= (1 + outlier_share) * others_.median;
    return sure ? one.median / others_.median : 0;
  }

 private:
  Robust others_;
  bool enough_ = false;
};

using Best = std::vector<std::optional<RoundResult>>;

// Of each member, its fastest link in one direction.
Best fastest(const PairTimes& times, bool sending) {
  Best best(times.size());
  for (std::size_t from = 0; from < times.size(); ++from)
    for (std::size_t to = 0; to < times.size(); ++to) {
      const auto& time = times[from][to];
      auto& mine = best[sending ? from : to];
      if (time && (!mine || time->median < mine->median)) mine = time;
    }
  return best;
}

// By member, how slow it is in that direction.
std::vector<double> slow_members(const PairTimes& times, bool sending) {
  const Best best = fastest(times, sending);
  std::vector<RoundResult> all;
  for (const auto& one : best)
    if (one) all.push_back(*one);
  const Judge judge(all);
  std::vector<double> slow;
  for (const auto& one : best) slow.push_back(one ? judge.times_slow(*one) : 0);
  return slow;
}

std::string times_text(double times) { return fmt::format("{:.{}f}", times, times < 10 ? 2 : 0); }

struct Named {
  double times = 0;
  std::string text;
};

}  // namespace

int pairing_rounds(int members) { return members < 2 ? 0 : members - 1 + members % 2; }

// One member of an even number stands still, the others turn: i and j meet in the round that is i + j modulo their
// number, and the one that would meet itself meets who stands still, or nobody.
std::optional<int> partner_of(int member, int round, int members) {
  const int turning = members - 1 + members % 2;
  const auto other = [&](int i) { return ((round - i) % turning + turning) % turning; };
  if (member == turning) {
    for (int i = 0; i < turning; ++i)
      if (other(i) == i) return i;
  }
  if (other(member) != member) return other(member);
  return members % 2 == 0 ? std::optional(turning) : std::nullopt;
}

std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names) {
  const std::size_t members = times.size();
  if (members < 3) return {};
  const std::vector<double> sending = slow_members(times, true), receiving = slow_members(times, false);
  std::vector<Named> found;
  for (std::size_t i = 0; i < members; ++i) {
    const double most = std::max(sending[i], receiving[i]);
    if (most == 0) continue;
    const char* way = sending[i] > 0 && receiving[i] > 0 ? "" : sending[i] > 0 ? " in sending" : " in receiving";
    found.push_back({most, fmt::format("slow host {}: even its fastest link takes {} times as long as the median "
                                       "host's{}",
                                       names[i], times_text(most), way)});
  }
  // The worst first; equal ones in their order.
  const auto worst_first = [](std::vector<Named>& all) {
    std::stable_sort(all.begin(), all.end(), [](const Named& a, const Named& b) { return a.times > b.times; });
  };
  worst_first(found);

  std::vector<RoundResult> rest;
  const auto counts = [&](std::size_t from, std::size_t to) {
    return times[from][to] && sending[from] == 0 && receiving[to] == 0;
  };
  for (std::size_t from = 0; from < members; ++from)
    for (std::size_t to = 0; to < members; ++to)
      if (counts(from, to)) rest.push_back(*times[from][to]);
  const Judge judge(rest);
  std::vector<Named> links;
  for (std::size_t a = 0; a < members; ++a)
    for (std::size_t b = a + 1; b < members; ++b) {
      const double there = counts(a, b) ? judge.times_slow(*times[a][b]) : 0;
      const double back = counts(b, a) ? judge.times_slow(*times[b][a]) : 0;
      const double most = std::max(there, back);
      if (most == 0) continue;
      const bool both = there > 0 && back > 0;
      links.push_back({most, fmt::format("slow link {} {} {}: {} times the median link's time{}",
                                         names[there > 0 ? a : b], both ? "-" : "->", names[there > 0 ? b : a],
                                         times_text(most), both ? ", both ways" : ", that way alone")});
    }
  worst_first(links);
  found.insert(found.end(), links.begin(), links.end());

  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(found.size(), most_named); ++i) texts.push_back(std::move(found[i].text));
  if (found.size() > most_named)
    texts.push_back(fmt::format("slow: {} more hosts or links", found.size() - most_named));
  return texts;
}

}  // namespace assay::collective
