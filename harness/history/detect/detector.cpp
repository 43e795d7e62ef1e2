// All series: walked one by one, in threads; then each night's alarms are decided over all of them.
#include "harness/history/detect/detector.h"

#include "harness/core/error.h"
#include "harness/history/detect/groups.h"
#include "harness/history/detect/regimes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

namespace assay::history {

namespace {

constexpr Night long_ago = std::numeric_limits<Night>::min();

// Calls work(i) for every i < count, each once, on some thread.
void in_threads(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto loop = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(loop);
  loop();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// Whether only the last night or nights show a step, which starts no regime yet.
bool is_of_one_night(const Change& change, const std::vector<Night>& regimes) {
  return change.stage == Stage::suspect && change.same_night &&
         !std::binary_search(regimes.begin(), regimes.end(), change.first_after);
}

// Continues from a state: its changes move to where the walk keeps them. A suspect of one night is looked for again.
Walked resume(SeriesState&& state) {
  Walked walked{.state = std::move(state), .changes = {}, .trials = {}, .tested = {}};
  const std::vector<Night>& regimes = walked.state.regimes;
  for (Change& change : walked.state.changes) {
    if (!is_of_one_night(change, regimes)) walked.changes.push_back({std::move(change)});
  }
  walked.state.changes.clear();
  return walked;
}

SeriesState finish(Walked&& walked) {
  for (WalkedChange& item : walked.changes) {
    Change& change = item.change;
    if (change.opened && item.merged && !item.replaced) {
      change.stage = Stage::recovered;
    } else if (change.opened && change.stage != Stage::recovered) {
      change.stage = Stage::open;
    }
    if (change.opened || !item.merged) walked.state.changes.push_back(std::move(change));
  }
  return std::move(walked.state);
}

struct Candidate {
  double p = 1;
  Change* change = nullptr;
};

// Opens what passes over `tests` tests.
void open_passing(std::vector<Candidate>& candidates, double level, std::size_t tests, NightSummary& summary) {
  std::ranges::stable_sort(candidates, {}, &Candidate::p);
  std::vector<double> ascending;
  for (const Candidate& one : candidates) ascending.push_back(one.p);
  summary.opened = passing(ascending, level, tests);
  for (std::size_t k = 0; k < summary.opened; ++k) candidates[k].change->opened = summary.night;
  summary.threshold = level * static_cast<double>(std::max<std::size_t>(summary.opened, 1)) /
                      static_cast<double>(std::max<std::size_t>(tests, 1));
}

void decide(std::vector<Walked>& walked, const Options& options, std::span<NightSummary> nights) {
  const auto index_of = [&](Night night) {
    return static_cast<std::size_t>(std::ranges::lower_bound(nights, night, {}, &NightSummary::night) - nights.begin());
  };
  std::vector<std::vector<std::pair<Walked*, const Trial*>>> trials(nights.size());
  for (Walked& item : walked) {
    for (const Night night : item.tested) {
      const std::size_t i = index_of(night);
      if (i < nights.size() && nights[i].night == night) ++nights[i].tested;
    }
    for (const Trial& trial : item.trials) {
      const std::size_t i = index_of(trial.night);
      if (i < nights.size() && nights[i].night == trial.night) trials[i].emplace_back(&item, &trial);
    }
  }
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < nights.size(); ++i) {
    candidates.clear();
    std::size_t exact = 0;
    for (const auto& [item, trial] : trials[i]) {
      Change& change = item->changes[trial->change].change;
      if (change.opened) continue;
      if (trial->exact)
        change.opened = nights[i].night, ++exact;
      else if (may_alarm(*trial, options, nights[i].tested))
        candidates.push_back({trial->p, &change});
    }
    open_passing(candidates, options.false_alarms, nights[i].tested, nights[i]);
    nights[i].opened += exact;
  }
}

std::vector<NightSummary> nights_after(std::span<const Track> tracks, Night known) {
  std::vector<Night> nights;
  for (const Track& track : tracks) {
    const auto first = std::ranges::upper_bound(track.nights, known);
    std::vector<Night> merged;
    std::set_union(nights.begin(), nights.end(), first, track.nights.end(), std::back_inserter(merged));
    nights = std::move(merged);
  }
  std::vector<NightSummary> summaries(nights.size());
  for (std::size_t i = 0; i < nights.size(); ++i) summaries[i].night = nights[i];
  return summaries;
}

void check(std::span<const Track> tracks, std::span<const Group> groups) {
  for (const Track& track : tracks) {
    ASSAY_CHECK(track.nights.size() == track.values.size());
    ASSAY_CHECK(std::ranges::adjacent_find(track.nights, std::greater_equal<>()) == track.nights.end());
    ASSAY_CHECK(std::ranges::all_of(track.values, [](double x) { return std::isfinite(x); }));
  }
  for (const Group& group : groups) {
    ASSAY_CHECK(std::ranges::all_of(group.members, [&](std::size_t i) { return i < tracks.size(); }));
  }
}

// Of the steps that only the last night or nights show, the largest stay, as nobody measures more again in a night.
void keep_largest_suspects(Analysis& analysis) {
  std::vector<double> sizes;
  const auto each = [&](auto&& what) {
    for (auto* states : {&analysis.series, &analysis.groups})
      for (SeriesState& state : *states) what(state);
  };
  each([&](SeriesState& state) {
    for (const Change& change : state.changes)
      if (is_of_one_night(change, state.regimes)) sizes.push_back(std::abs(change.shift));
  });
  if (sizes.size() <= max_suspects) return;
  std::ranges::nth_element(sizes, sizes.begin() + max_suspects, std::greater<>());
  each([&](SeriesState& state) {
    std::erase_if(state.changes, [&](const Change& change) {
      return is_of_one_night(change, state.regimes) && std::abs(change.shift) <= sizes[max_suspects];
    });
  });
}

}  // namespace

std::size_t passing(std::span<const double> ascending, double level, std::size_t tests) {
  const double step = level / static_cast<double>(std::max<std::size_t>(tests, 1));
  std::size_t count = 0;
  for (std::size_t k = 0; k < ascending.size(); ++k)
    if (ascending[k] <= step * static_cast<double>(k + 1)) count = k + 1;
  return count;
}

Analysis analyse(std::span<const Track> tracks, std::span<const Group> groups, const Options& options,
                 Analysis previous) {
  check(tracks, groups);
  const Night known = previous.nights.empty() ? long_ago : previous.nights.back().night;
  std::vector<NightSummary> nights = nights_after(tracks, known);
  if (nights.empty()) {
    previous.series.resize(tracks.size());
    previous.groups.resize(groups.size());
    return previous;
  }
  const Night last = nights.back().night;

  // Groups first, as they are the longest pieces of work.
  const std::size_t items = groups.size() + tracks.size();
  std::vector<Walked> walked(items);
  std::vector<Track> of_groups(groups.size());
  in_threads(items, options.threads, [&](std::size_t i) {
    const bool is_group = i < groups.size();
    const std::size_t index = is_group ? i : i - groups.size();
    std::vector<SeriesState>& states = is_group ? previous.groups : previous.series;
    const bool is_new = index >= states.size();
    walked[i] = resume(is_new ? SeriesState() : std::move(states[index]));
    const Night first = is_new || known == long_ago ? long_ago : known + 1;
    if (is_group) {
      of_groups[index] = walk_group(tracks, groups[index], options, first, last, walked[i]);
    } else if (!tracks[index].nights.empty()) {
      walk(tracks[index], options, {.first = first, .last = last}, walked[i]);
    }
  });
  decide(walked, options, nights);

  Analysis analysis;
  analysis.series.resize(tracks.size());
  analysis.groups.resize(groups.size());
  in_threads(items, options.threads, [&](std::size_t i) {
    const bool is_group = i < groups.size();
    const std::size_t index = is_group ? i : i - groups.size();
    SeriesState& state = is_group ? analysis.groups[index] : analysis.series[index];
    state = finish(std::move(walked[i]));
    if (state.regimes.empty()) return;
    conclude(is_group ? of_groups[index] : tracks[index], options, nights.back(), state);
  });
  keep_largest_suspects(analysis);
  analysis.nights = std::move(previous.nights);
  analysis.nights.insert(analysis.nights.end(), nights.begin(), nights.end());
  return analysis;
}

}  // namespace assay::history
