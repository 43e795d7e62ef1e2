#include "harness/history/blame/blame.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace assay::history {

namespace {

constexpr const char* commit_fact = "commit";
constexpr double clear_weight = 0.05;  // of a change's own best gap: it may have happened there

struct Transition {
  std::string fact, before, after;
  auto operator<=>(const Transition&) const = default;
};

// What goes up and down with speed by itself. What sets it (a limit, a governor) may be a cause.
bool mediates(std::string_view fact) {
  static constexpr std::array<std::string_view, 6> words{"clock", "mhz",     "frequency",
                                                         "power", "throttl", "temperature"};
  static constexpr std::array<std::string_view, 5> settings{"limit", "cap", "governor", "policy", "mode"};
  const std::string lower = lower_case(fact);
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  return std::ranges::any_of(words, has) && std::ranges::none_of(settings, has);
}

void differences(const store::Facts& before, const store::Facts& after, const std::string& prefix,
                 std::set<Transition>& to) {
  const auto note = [&](const std::string& name) {
    const std::string old = store::fact_of(before, name), now = store::fact_of(after, name);
    if (old != now) to.insert({prefix + name, old, now});
  };
  for (const auto& [name, value] : before) note(name);
  for (const auto& [name, value] : after) note(name);
}

class Facts {
 public:
  explicit Facts(const store::Contents& contents) : contents_(contents) {}

  // The facts that changed from one run to another.
  std::set<Transition> between(std::int32_t before, std::int32_t after) const {
    std::set<Transition> all;
    const store::Run &a = run(before), &b = run(after);
    if (a.facts != b.facts) differences(facts(a.facts), facts(b.facts), "", all);
    if (a.commit != b.commit) all.insert({commit_fact, a.commit, b.commit});
    return all;
  }
  void chosen(std::int32_t before, std::int32_t after, std::set<Transition>& to) const {
    if (before != after) differences(facts(before), facts(after), "choice.", to);
  }
  std::string value(std::int32_t index, const std::string& fact) const {
    const store::Run& one = run(index);
    return fact == commit_fact ? one.commit : store::fact_of(facts(one.facts), fact);
  }
  const store::Run& run(std::int32_t index) const { return contents_.runs[static_cast<std::size_t>(index)]; }

 private:
  const store::Facts& facts(std::int32_t index) const { return contents_.facts[static_cast<std::size_t>(index)]; }
  const store::Contents& contents_;
};

// Whether a change of the series in this direction may lie between these nights.
bool moved(const SeriesState& state, Night before, Night after, bool slower) {
  for (const Change& change : state.changes) {
    if ((change.shift < 0) != slower) continue;
    double best = 0, here = 0;
    for (const Change::Gap& gap : change.gaps) {
      best = std::max(best, gap.weight);
      if (gap.before < after && gap.after > before) here = std::max(here, gap.weight);
    }
    if (change.gaps.empty() ? change.last_before < after && change.first_after > before
                            : here > 0 && here >= clear_weight * best)
      return true;
  }
  return false;
}

struct Side {
  std::size_t before = 0, after = 0;  // places in the track
};

std::optional<Side> sides(const TrackedSeries& series, Night last_before, Night first_after) {
  const auto before = series.at_or_before(last_before), after = series.at_or_after(first_after);
  return before && after ? std::optional(Side{*before, *after}) : std::nullopt;
}

// A case on any machine.
std::tuple<std::string, std::string, std::string, int> case_of(const TrackedSeries& series) {
  const store::SeriesIdentity& id = series.identity;
  return {id.key, id.metric, id.device, id.ranks};
}

struct CrossTable {
  std::size_t slowed = 0, changed = 0, both = 0, all = 0;
  void add(bool did_change, bool did_slow) {
    ++all;
    slowed += did_slow, changed += did_change, both += did_change && did_slow;
  }
  double p() const { return fisher(all, slowed, changed, both); }
  std::string text(const char* what) const {
    if (all == slowed) return fmt::format("changed on {} of {} {}", both, slowed, what);
    return fmt::format("changed on {} of {} {} that changed speed, and on {} of {} others", both, slowed, what,
                       changed - both, all - slowed);
  }
};

// A machine that runs cases of the effect.
struct MachineView {
  std::vector<std::size_t> cases;  // series of the effect's cases
  std::vector<std::size_t> all;    // series with both sides of the gap
  bool slowed = false;             // has series of the effect
};

class Inquiry {
 public:
  Inquiry(const Effect& effect, const store::Contents& contents, std::span<const TrackedSeries> series,
          std::span<const SeriesState> states)
      : effect_(effect),
        facts_(contents),
        series_(series),
        states_(states),
        affected_(effect.series.begin(), effect.series.end()) {
    std::set<decltype(case_of(series[0]))> cases;
    std::set<std::string> names;
    for (const std::size_t i : effect.series)
      cases.insert(case_of(series[i])), names.insert(series[i].identity.machine);
    for (std::size_t i = 0; i < series.size(); ++i) {
      MachineView& machine = machines_[series[i].identity.machine];
      if (cases.contains(case_of(series[i]))) machine.cases.push_back(i);
      if (names.contains(series[i].identity.machine) && sides(series[i], effect.last_before, effect.first_after))
        machine.all.push_back(i);
      machine.slowed = machine.slowed || affected_.contains(i);
    }
    std::erase_if(machines_, [](const auto& one) { return one.second.cases.empty(); });
  }

  Blame answer() {
    std::set<Transition> found;
    for (const std::size_t i : effect_.series)
      for (const Transition& one : changes_of(i)) found.insert(one);
    Blame blame;
    for (const Transition& one : found) {
      Cause cause = judged(one);
      if (mediates(one.fact))
        blame.mediators.push_back(std::move(cause));
      else if (!cause.exonerated_by.empty())
        blame.exonerated.push_back(std::move(cause));
      else
        blame.causes.push_back(std::move(cause));
    }
    std::ranges::stable_sort(blame.causes, [&](const Cause& a, const Cause& b) {
      if (disturbs(a) != disturbs(b)) return disturbs(a);
      if (a.p != b.p) return a.p < b.p;
      return changes_of_fact_.at(a.fact) < changes_of_fact_.at(b.fact);
    });
    blame.sentence = sentence(blame);
    return blame;
  }

 private:
  // The facts that changed across the effect's gap, for a series.
  const std::set<Transition>& changes_of(std::size_t i) {
    const auto [at, fresh] = changes_.try_emplace(i);
    if (!fresh) return at->second;
    if (const auto side = sides(series_[i], effect_.last_before, effect_.first_after)) {
      at->second = facts_.between(series_[i].runs[side->before], series_[i].runs[side->after]);
      facts_.chosen(series_[i].choices[side->before], series_[i].choices[side->after], at->second);
    }
    return at->second;
  }

  // Whether the machine went through this transition anywhere, and whether its cases then changed speed. Absent if it
  // did not.
  std::optional<bool> elsewhere(const MachineView& machine, const Transition& wanted) const {
    std::optional<bool> slowed;
    for (const std::size_t i : machine.cases) {
      const TrackedSeries& one = series_[i];
      for (std::size_t n = 1; n < one.runs.size(); ++n) {
        const store::Run &a = facts_.run(one.runs[n - 1]), &b = facts_.run(one.runs[n]);
        if (a.facts == b.facts && a.commit == b.commit) continue;
        if (facts_.value(one.runs[n], wanted.fact) != wanted.after ||
            facts_.value(one.runs[n - 1], wanted.fact) != wanted.before)
          continue;
        slowed =
            slowed.value_or(false) || moved(states_[i], one.track.nights[n - 1], one.track.nights[n], effect_.slower);
      }
    }
    return slowed;
  }

  // How often the fact changed in the effect's series: what changes every night is the less telling.
  std::size_t changes_of_fact(const Transition& wanted) const {
    std::size_t count = 0;
    const TrackedSeries& one = series_[effect_.series.front()];
    if (wanted.fact.starts_with("choice.")) return 0;
    for (std::size_t n = 1; n < one.runs.size(); ++n)
      if (facts_.value(one.runs[n], wanted.fact) != facts_.value(one.runs[n - 1], wanted.fact)) ++count;
    return count;
  }

  Cause judged(const Transition& one) {
    CrossTable machines, within;
    Cause cause{one.fact, one.before, one.after};
    const bool choice = one.fact.starts_with("choice.");
    for (const auto& [name, machine] : machines_) {
      bool changed = false, slowed = machine.slowed;
      for (const std::size_t i : machine.cases) changed = changed || changes_of(i).contains(one);
      if (!changed && !choice)
        if (const auto other = elsewhere(machine, one)) changed = true, slowed = slowed || *other;
      machines.add(changed, slowed);
      if (changed && !slowed) cause.exonerated_by.push_back(name);
    }
    for (const auto& [name, machine] : machines_)
      if (machine.slowed)
        for (const std::size_t i : machine.all)
          within.add(changes_of(i).contains(one), affected_.contains(i) || moved(states_[i], effect_.last_before,
                                                                                 effect_.first_after, effect_.slower));
    // Between machines and within them are independent. What changed in all series of a machine has p = 1 there.
    const double inner = within.p();
    cause.p = machines.p() * inner;
    cause.evidence = disturbs(cause) ? "took CPU time while these cases were measured: their figures are lower bounds"
                     : inner < 1 && machines.p() == 1 ? within.text("series")
                                                      : machines.text("machines");
    changes_of_fact_[one.fact] = changes_of_fact(one);
    return cause;
  }

  // Other users of the CPUs were seen taking time from the cases, so no statistics are needed; and what a search then
  // chose is their effect. They must take as much on most of the first nights, and on few of those before: others that
  // came once, or were always there, explain no lasting change.
  bool disturbs(const Cause& cause) const {
    if (!effect_.slower || cause.fact != "outside_cpu") return false;
    const double taken = store::Others::of(cause.after).share;
    if (taken == 0) return false;
    constexpr std::size_t max_nights = 14;
    const TrackedSeries& one = series_[effect_.series.front()];
    const auto on_most = [&](std::size_t first, std::size_t last) {
      std::size_t nights = 0;
      // To a power of two, the same share may be the next smaller one.
      for (std::size_t n = first; n < last; ++n)
        nights += store::Others::of(facts_.value(one.runs[n], "outside_cpu")).share >= taken / 2;
      return 2 * nights > last - first;
    };
    const std::size_t here = one.at_or_after(effect_.first_after).value_or(one.runs.size());
    return on_most(here, std::min(one.runs.size(), here + max_nights)) &&
           !on_most(here - std::min(here, max_nights), here);
  }

  static std::string described(const Cause& cause) {
    const auto value = [](const std::string& text) { return text.empty() ? "none" : one_line(text, 60); };
    return fmt::format("{} ({} -> {})", one_line(cause.fact, 60), value(cause.before), value(cause.after));
  }

  std::string sentence(const Blame& blame) const {
    constexpr std::size_t max_named = 5;
    if (blame.causes.empty()) {
      std::string text = blame.exonerated.empty() && blame.mediators.empty()
                             ? "no recorded fact changed there"
                             : "no recorded fact that could be the cause changed there";
      if (!blame.mediators.empty())
        text += fmt::format("; {} changed with it, which is an effect of something else",
                            described(blame.mediators.front()));
      return text;
    }
    if (const Cause& first = blame.causes.front(); disturbs(first))
      return fmt::format("{}: {}", described(first), first.evidence);
    std::vector<std::string> equal;
    for (const Cause& cause : blame.causes)
      if (cause.p == blame.causes.front().p) equal.push_back(described(cause));
    if (equal.size() == 1)
      return blame.causes.size() == 1 && blame.causes.front().p == 1
                 ? equal.front() + ": nothing else that is recorded changed there"
                 : fmt::format("{}: {}", equal.front(), blame.causes.front().evidence);
    return fmt::format("these {} cannot be told apart: {}", equal.size(), first_few(equal, max_named));
  }

  const Effect& effect_;
  Facts facts_;
  std::span<const TrackedSeries> series_;
  std::span<const SeriesState> states_;
  std::set<std::size_t> affected_;  // the effect's series
  std::map<std::string, MachineView> machines_;
  std::map<std::size_t, std::set<Transition>> changes_;
  std::map<std::string, std::size_t> changes_of_fact_;
};

}  // namespace

double fisher(std::size_t all, std::size_t slowed, std::size_t changed, std::size_t both) {
  const auto choose = [](std::size_t n, std::size_t k) {
    return std::lgamma(static_cast<double>(n + 1)) - std::lgamma(static_cast<double>(k + 1)) -
           std::lgamma(static_cast<double>(n - k + 1));
  };
  // Exact where it is certain, so that equal tables are equal.
  if (both == 0 || changed == all || slowed == all) return 1;
  double p = 0;
  for (std::size_t k = both; k <= std::min(slowed, changed); ++k)
    if (changed - k <= all - slowed)
      p += std::exp(choose(slowed, k) + choose(all - slowed, changed - k) - choose(all, changed));
  return std::min(p, 1.0);
}

Blame blame(const Effect& effect, const store::Contents& contents, std::span<const TrackedSeries> series,
            std::span<const SeriesState> states) {
  if (effect.series.empty()) return {};
  return Inquiry(effect, contents, series, states).answer();
}

}  // namespace assay::history
