#include "harness/history/tonight.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace assay::history {

namespace {

constexpr double confirm_part = 0.6;  // of what is left of the budget; the rest is for finding the commit

std::string short_hash(const std::string& commit) { return commit.substr(0, 12); }

std::string percent_text(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

// Candidates of the same two commits.
struct Pair {
  std::string good, bad;
  std::vector<Candidate> candidates;
};

class Tonight {
 public:
  Tonight(const History& history, const Repository& repository, const NightRequest& request, const BuildOf& build,
          const Measure& measure)
      : history_(history), repository_(repository), request_(request), build_(build), measure_(measure) {}

  NightDecisions decide() {
    const std::vector<Pair> pairs = pairs_of_suspects();
    for (const Pair& pair : pairs) confirm_pair(pair);
    find_commits();
    if (made_.lines.empty()) line("No suspect to confirm, and nothing that became slower to bisect.");
    return std::move(made_);
  }

 private:
  void line(std::string text) { made_.lines.push_back(std::move(text)); }
  double left() const { return request_.budget - seconds_since(start_); }

  const std::string& commit_before(const Event& event) const {
    return commit_of(history_.run_before(event.series.front().series, event.last_before));
  }
  const std::string& commit_after(const Event& event) const {
    return commit_of(history_.run_after(event.series.front().series, event.first_after));
  }
  static const std::string& commit_of(const store::Run* run) {
    static const std::string none;
    return run ? run->commit : none;
  }
  bool is_here(const Event& event) const {
    return std::ranges::any_of(event.machines, [&](const auto& one) { return request_.machines.contains(one); });
  }

  std::vector<Pair> pairs_of_suspects() {
    std::vector<Candidate> all;
    for (const Suspect& one : history_.found.suspects)
      if (!one.dismissed)
        if (auto candidate = candidate_of(history_, one.id)) all.push_back(std::move(*candidate));
    if (std::ranges::any_of(all, [&](const Candidate& one) { return is_here(one.event); })) {
      const auto elsewhere = std::erase_if(all, [&](const Candidate& one) { return !is_here(one.event); });
      if (elsewhere > 0)
        line(fmt::format("Not measured: {} of other machines.",
                         plural(static_cast<std::int64_t>(elsewhere), "suspect")));
    }
    std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) {
      return std::abs(a.event.shift.value_or(0)) > std::abs(b.event.shift.value_or(0));
    });
    std::vector<Pair> pairs;
    std::size_t unknown = 0;
    for (Candidate& one : all) {
      const std::string good = commit_before(one.event);
      const store::Run* newest = history_.run_before(one.event.series.front().series, *history_.arrival.last);
      const std::string bad = commit_of(newest);
      if (good.empty() || bad.empty() || good == bad) {
        ++unknown;
        continue;
      }
      const auto same =
          std::ranges::find_if(pairs, [&](const Pair& pair) { return pair.good == good && pair.bad == bad; });
      if (same == pairs.end())
        pairs.push_back({good, bad, {std::move(one)}});
      else
        same->candidates.push_back(std::move(one));
    }
    if (unknown > 0)
      line(
          fmt::format("Not measured: {} whose runs name no two commits, so a build is not what changed, or it is not "
                      "known.",
                      plural(static_cast<std::int64_t>(unknown), "suspect")));
    return pairs;
  }

  // Both commits' checkouts; says why there are none.
  std::optional<std::pair<std::filesystem::path, std::filesystem::path>> built(const std::string& good,
                                                                               const std::string& bad) {
    std::string why;
    const auto a = build_(good, left(), why);
    const auto b = a ? build_(bad, left(), why) : std::nullopt;
    if (a && b) return std::pair(*a, *b);
    line(fmt::format("Not measured: {}.", why));
    return std::nullopt;
  }

  void confirm_pair(const Pair& pair) {
    const std::string what = fmt::format(
        "{} of {}..{} (the largest {})", plural(static_cast<std::int64_t>(pair.candidates.size()), "suspect"),
        short_hash(pair.good), short_hash(pair.bad), pair.candidates.front().event.subject);
    if (left() <= 0) return line(fmt::format("Not measured, as the budget is used up: {}.", what));
    const auto folders = built(pair.good, pair.bad);
    if (!folders) return;
    const double before = left();
    if (before <= 0) return line(fmt::format("Not measured, as the builds used up the budget: {}.", what));
    std::vector<Confirmation> found =
        confirm_all(history_, pair.candidates,
                    {shell_in_folder(folders->first, request_.run), shell_in_folder(folders->second, request_.run),
                     request_.metric, confirm_part * before, request_.seed},
                    measure_);
    const std::string seconds = format_seconds(before - left());
    std::string own_time;  // of both builds, if one is slower or faster
    for (Confirmation& one : found) {
      const Direction verdict = one.outcome().verdict;
      line(fmt::format("{}: {}: {} ({} after {} in {}).", one.candidate.event.id, history_.series[one.series()].name,
                       one.is_confirmed()              ? fmt::format("confirmed {}", name_of(verdict, ""))
                       : verdict == Direction::unknown ? "undecided when its part of the budget was used up"
                                                       : "dismissed: the builds do not differ so",
                       percent_text(one.outcome().ratio),
                       plural(static_cast<std::int64_t>(one.outcome().pairs), "pair"), seconds));
      if (one.is_confirmed() && request_.where && own_time.empty() && left() > 0)
        own_time = request_.where(shell_in_folder(folders->first, request_.run),
                                  shell_in_folder(folders->second, request_.run), left());
      if (one.is_confirmed() && !own_time.empty())
        line(fmt::format("{}: own time of functions: {}.", one.candidate.event.id, own_time));
      made_.confirmations.push_back(std::move(one));
    }
    if (found.size() < pair.candidates.size())
      line(fmt::format("Not measured: {} that the command does not print.",
                       plural(static_cast<std::int64_t>(pair.candidates.size() - found.size()), "suspect")));
  }

  // What is slower, with its worst series alone: confirmed now, or opened by the nights and not yet reported.
  std::vector<Event> red() const {
    std::vector<Event> all;
    for (const Confirmation& one : made_.confirmations)
      if (one.is_confirmed() && one.candidate.event.kind == EventKind::slower) {
        Event event = one.candidate.event;
        std::erase_if(event.series, [&](const EventSeries& part) { return part.series != one.series(); });
        all.push_back(std::move(event));
      }
    for (const Event& event : history_.found.events)
      if (event.alarms() && event.kind == EventKind::slower && !event.series.empty() && event.culprit.empty() &&
          (request_.machines.empty() || is_here(event))) {
        all.push_back(event);
        all.back().series.resize(1);
      }
    return all;
  }

  void find_commits() {
    std::map<std::pair<std::string, std::string>, std::string> known;  // culprits of a gap
    for (Event& event : red()) {
      const std::string good = commit_before(event), bad = commit_after(event);
      if (good.empty() || bad.empty() || good == bad) continue;
      if (left() <= 0) {
        line(fmt::format("{}: not bisected, as the budget is used up: {}..{}.", event.id, short_hash(good),
                         short_hash(bad)));
        continue;
      }
      try {
        std::string& culprit = known[{good, bad}];
        if (culprit.empty()) culprit = culprit_of(event, good, bad);
        if (culprit.empty()) continue;
        event.culprit = culprit;
        line(fmt::format("{}: since {}.", event.id, culprit));
        made_.found.push_back(event);
      } catch (const UsageError& error) {
        line(fmt::format("{}: not bisected: {}.", event.id, error.what()));
      }
    }
  }

  // The commit that made the event's series slower: its hash and subject; or the commits that it is one of.
  std::string culprit_of(const Event& event, const std::string& good, const std::string& bad) {
    const std::vector<Commit> commits = repository_.commits(good, bad);
    std::string why;
    const auto base = build_(good, left(), why);
    if (!base) {
      line(fmt::format("{}: not bisected: {}.", event.id, why));
      return {};
    }
    const EventSeries& part = event.series.front();
    // Half of the step: of two steps between the commits, the larger is the one to find.
    const double tolerance = std::max(history_.options.tolerance,
                                      -std::expm1(-std::abs(part.measured ? part.measured->ratio : part.shift) / 2));
    const auto has = [&](std::size_t at) -> std::optional<bool> {
      const auto folder = build_(commits[at].hash, left(), why);
      if (!folder || left() <= 0) return std::nullopt;
      const auto outcome = confirm_all(history_, {{event, true}},
                                       {shell_in_folder(*base, request_.run), shell_in_folder(*folder, request_.run),
                                        request_.metric, left(), request_.seed + at + 1, tolerance},
                                       measure_)
                               .front()
                               .outcome();
      if (outcome.verdict == Direction::unknown) {
        why = fmt::format("{} was undecided after {}", short_hash(commits[at].hash),
                          plural(static_cast<std::int64_t>(outcome.pairs), "pair"));
        return std::nullopt;
      }
      return outcome.verdict == Direction::slower;
    };
    const Narrowed found = bisect(commits.size(), has, [&] { return left() > 0; });
    if (found.first == found.last)
      return fmt::format("{} {}", short_hash(commits[found.last].hash), in_quotes(commits[found.last].subject));
    line(fmt::format("{}: bisected only to {} commits: {}.", event.id, found.last - found.first + 1,
                     left() <= 0 ? "the budget is used up" : why));
    return fmt::format("one of {} commits, {}..{}", found.last - found.first + 1,
                       short_hash(found.first == 0 ? good : commits[found.first - 1].hash),
                       short_hash(commits[found.last].hash));
  }

  const History& history_;
  const Repository& repository_;
  const NightRequest& request_;
  const BuildOf& build_;
  const Measure& measure_;
  const Clock::time_point start_ = Clock::now();
  NightDecisions made_;
};

}  // namespace

Narrowed bisect(std::size_t commits, const std::function<std::optional<bool>(std::size_t)>& has,
                const std::function<bool()>& go_on) {
  Narrowed found{0, commits - 1};
  while (found.first < found.last) {
    // Commits first..last-1 are open; the middle one is asked, and then those beside it.
    const std::size_t count = found.last - found.first, middle = found.first + (count - 1) / 2;
    std::optional<bool> answer;
    std::size_t at = middle;
    for (std::size_t away = 0; away < 2 * count && !answer && go_on(); ++away) {
      const std::size_t step = (away + 1) / 2;
      if (away % 2 == 1 ? middle + step >= found.last : middle < found.first + step) continue;
      at = away % 2 == 1 ? middle + step : middle - step;
      answer = has(at);
    }
    if (!answer) return found;
    (*answer ? found.last : found.first) = *answer ? at : at + 1;
  }
  return found;
}

NightDecisions decide_night(const History& history, const Repository& repository, const NightRequest& request,
                            const BuildOf& build, const Measure& measure) {
  return Tonight(history, repository, request, build, measure).decide();
}

History with_decisions(store::Store& store, History history, NightDecisions decisions) {
  std::set<std::string> fresh;
  for (const Event& found : decisions.found) {
    for (Event& event : history.found.events)
      if (event.id == found.id) event.culprit = found.culprit;
    for (Confirmation& one : decisions.confirmations)
      if (one.candidate.event.id == found.id) one.candidate.event.culprit = found.culprit;
  }
  for (const Event& event : history.found.events)
    if (event.fresh) fresh.insert(event.id);
  save_events(store, history);
  for (const Confirmation& one : decisions.confirmations) {
    save_confirmation(store, one, history);
    if (one.is_confirmed()) fresh.insert(one.candidate.event.id);
  }
  History again = read_history(store, history.options);
  for (Event& event : again.found.events) event.fresh = event.fresh || fresh.contains(event.id);
  again.tonight = std::move(decisions.lines);
  return again;
}

}  // namespace assay::history
