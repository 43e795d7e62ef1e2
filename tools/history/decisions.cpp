// What is decided beside the nightly check: suspects measured again, and branches.
#include "harness/ab/ab.h"
#include "harness/history/branch.h"
#include "harness/history/confirm.h"
#include "tools/history/simulation.h"
#include "tools/history/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>

namespace assay::history {

namespace {

constexpr std::size_t max_pairs = 200;  // of a confirmation
constexpr std::size_t max_confirmed = 3;

// A build whose runs of tonight have this noise and speed.
ab::Side side_of(std::vector<double>& noise, double shift) {
  return [&noise, shift](Clock::time_point) -> std::vector<ab::Figure> {
    if (noise.empty()) return {};
    const double run = noise.back();
    noise.pop_back();
    return {{"time", std::exp(-(sigma * run + shift))}};
  };
}

// What `history confirm` says of a suspect whose builds differ by `shift`, if tonight's runs have that noise.
ab::Result confirm(Kind kind, std::uint64_t seed, double shift, std::size_t earlier) {
  const Options promised;
  std::vector<double> noise = noise_of(kind, 2 * max_pairs + 2, seed, noise_of(Kind::iid, 2 * max_pairs + 2, ~seed));
  const ab::Side good = side_of(noise, 0), bad = side_of(noise, shift);
  return ab::run(
      good, bad,
      {.tolerance = promised.tolerance, .error = confirm_error(promised, earlier), .budget = 1e9, .seed = seed});
}

// Many series night after night, as `history check` sees them.
class Nightly {
 public:
  Nightly(Kind kind, std::size_t count, std::size_t length, std::uint64_t seed) : all_(count), series_(count) {
    const std::vector<double> common = noise_of(Kind::iid, length, ~seed);
    parallel(count, [&](std::size_t i) { all_[i] = track_of(noise_of(kind, length, seed * 1000000 + i, common)); });
    for (std::size_t i = 0; i < count; ++i) {
      series_[i].name = fmt::format("series {}", i);
      series_[i].identity.machine = "machine";
    }
  }

  // The suspects of night `at`, the one after the last call's; with `shift`, those if one series were slower or faster
  // by it on the night of the last call.
  std::vector<Suspect> suspects(std::size_t at, double shift = 0, std::size_t series = 0) {
    std::vector<Track> tracks(all_.size());
    for (std::size_t i = 0; i < all_.size(); ++i) tracks[i] = until(all_[i], at);
    if (shift == 0) {
      analysis_ = analyse(tracks, {}, {}, std::move(analysis_));
      return suspects_of(tracks, analysis_);
    }
    // Only the stepped series is analysed again; the others are as they were on that night.
    Analysis stepped = analysis_;
    tracks[series].values.back() += shift;
    SeriesState state = walked(tracks[series], {}).state;
    conclude(tracks[series], {}, stepped.nights.back(), state);
    stepped.series[series] = state;
    return suspects_of(tracks, stepped);
  }

 private:
  static Track until(const Track& track, std::size_t at) {
    const auto end = static_cast<std::ptrdiff_t>(at + 1);
    return {{track.nights.begin(), track.nights.begin() + end}, {track.values.begin(), track.values.begin() + end}};
  }
  std::vector<Suspect> suspects_of(const std::vector<Track>& tracks, const Analysis& analysis) {
    for (std::size_t i = 0; i < tracks.size(); ++i) series_[i].track = tracks[i];
    std::vector<Suspect> suspects = step_events(series_, {}, analysis, {}, {}).suspects;
    const Night tonight = tracks.front().nights.back();
    std::erase_if(suspects, [&](const Suspect& one) { return one.change.suspected != tonight; });
    return suspects;
  }

  std::vector<Track> all_;
  std::vector<TrackedSeries> series_;
  Analysis analysis_;
};

struct Confirmed {
  std::size_t nights = 0, suspects = 0, measured = 0, wrong = 0, undecided = 0, pairs = 0;
  std::size_t stepped = 0, suspected = 0, first = 0, opened = 0, opening_pairs = 0;
};

void confirm_clean(Kind kind, std::uint64_t seed, std::vector<Suspect> suspects, Confirmed& sum) {
  ++sum.nights;
  sum.suspects += suspects.size();
  for (std::size_t earlier = 0; earlier < max_confirmed && !suspects.empty(); ++earlier) {
    const Suspect chosen = *to_confirm(suspects);
    std::erase_if(suspects, [&](const Suspect& one) { return one.series == chosen.series; });
    const ab::Result result = confirm(kind, seed * max_confirmed + earlier, 0, earlier);
    ++sum.measured;
    sum.wrong += is_confirmed(result.all.verdict, chosen.change.shift < 0);
    sum.undecided += result.all.verdict == Direction::unknown;
    sum.pairs += result.all.pairs;
  }
}

void confirm_step(Kind kind, std::uint64_t seed, std::vector<Suspect> suspects, std::size_t series, double shift,
                  Confirmed& sum) {
  ++sum.stepped;
  const auto is_stepped = [&](const Suspect& one) { return one.series == series; };
  if (std::none_of(suspects.begin(), suspects.end(), is_stepped)) return;
  ++sum.suspected;
  for (std::size_t earlier = 0; earlier < max_confirmed; ++earlier) {
    const Suspect chosen = *to_confirm(suspects);
    if (is_stepped(chosen)) {
      const ab::Result result = confirm(kind, ~seed, shift, earlier);
      sum.first += earlier == 0;
      sum.opened += is_confirmed(result.all.verdict, shift < 0);
      sum.opening_pairs += result.all.pairs;
      return;
    }
    std::erase_if(suspects, [&](const Suspect& one) { return one.series == chosen.series; });
  }
}

std::string per(std::size_t sum, std::size_t count) {
  return count == 0 ? "–" : fmt::format("{:.0f}", static_cast<double>(sum) / static_cast<double>(count));
}

constexpr std::size_t lengths[] = {1, 3, 5}, sizes[] = {10, 1000, 10000};  // nights of a branch; series of a check
constexpr double steps[] = {0.05, 0.1, 0.2};

// Branches of some nights of all series.
struct Branches {
  std::vector<std::vector<BranchChange>> clean;      // by branch
  std::vector<std::optional<Comparison>> slower[3];  // by step: the first branch of the first 1,000 series
};

std::array<Branches, 3> branches_of(Kind kind, std::size_t count, std::size_t blocks) {
  const std::size_t longest = lengths[2], all = nights + blocks * longest;
  std::array<Branches, 3> made;
  for (Branches& one : made) {
    one.clean.assign(blocks, std::vector<BranchChange>(count));
    for (auto& step : one.slower) step.resize(std::min<std::size_t>(count, 1000));
  }
  parallel(count, [&](std::size_t i) {
    Track track = track_of(noise_of(kind, all, 6000000 + i));
    const std::vector<double> later(track.values.begin() + nights, track.values.end());
    track.nights.resize(nights);
    track.values.resize(nights);
    const SeriesState state = walked(track, {}).state;
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t b = 0; b < blocks; ++b) {
        const std::span<const double> values = std::span(later).subspan(b * longest, lengths[k]);
        if (const auto one = compare(track, state, values, {}, 300)) made[k].clean[b][i].found = *one;
        for (std::size_t s = 0; b == 0 && s < 3 && i < made[k].slower[s].size(); ++s) {
          std::vector<double> slower(values.begin(), values.end());
          for (double& x : slower) x -= std::log1p(steps[s]);
          made[k].slower[s][i] = compare(track, state, slower, {}, 300);
        }
      }
  });
  return made;
}

std::size_t count_of(const std::vector<BranchChange>& changes, std::initializer_list<BranchVerdict> verdicts) {
  return static_cast<std::size_t>(std::count_if(changes.begin(), changes.end(), [&](const BranchChange& one) {
    return std::find(verdicts.begin(), verdicts.end(), one.verdict) != verdicts.end();
  }));
}

// "0.97, 0.62, 0.31; 0.99": the shares of checks of 10, 1,000 and 10,000 series that fail if this is the only change,
// and in which it is at least a suspect.
std::string found_text(const std::vector<std::optional<Comparison>>& slower) {
  std::string text;
  std::size_t suspects = 0;
  for (const std::size_t size : sizes) {
    std::size_t failed = 0;
    suspects = 0;
    for (const auto& one : slower) {
      if (!one) continue;
      std::vector<BranchChange> alone = {{0, *one, 0}};
      judge_branch(alone, {.false_alarms = Options().false_alarms / static_cast<double>(size)});
      failed += count_of(alone, {BranchVerdict::slower});
      suspects += count_of(alone, {BranchVerdict::slower, BranchVerdict::suspect});
    }
    text += fmt::format("{}{:.2f}", text.empty() ? "" : ", ", share_of(failed, slower.size()));
  }
  return text + fmt::format("; {:.2f}", share_of(suspects, slower.size()));
}

}  // namespace

void confirmations(std::size_t count, std::size_t panels, const std::vector<Kind>& kinds) {
  constexpr std::size_t from = 150, until = 300;
  constexpr double step = 0.2;
  fmt::print(
      "## Suspects measured again the same night\n\n`history confirm` on the nights {} to {} of {} series: each night "
      "its {} largest new suspects, none of which is a change, in up to {} pairs of runs whose noise is that between "
      "nights; at most {:.1f} % of nights may open an event so. And a step of {:.0f} % in one series, another each "
      "night: the shares "
      "in which it is a suspect, the largest one, and confirmed that night as one of the largest three.\n\n",
      from + 1, until, count, max_confirmed, max_pairs, 100 * Options().false_alarms * confirm_share, 100 * step);
  fmt::print("{}{}",
             row("noise", {"nights", "suspects a night", "measured", "opened", "undecided", "pairs", "steps", "suspect",
                           "largest", "opened that night", "pairs"}),
             rule(11));
  for (const Kind kind : kinds) {
    struct Task {
      std::uint64_t seed;
      std::vector<Suspect> clean, stepped;
      std::size_t series;  // with the step
      double shift;
    };
    std::vector<Task> tasks;
    for (std::size_t k = 0; k < panels; ++k) {
      Nightly nightly(kind, count, until, 4000 + k);
      for (std::size_t at = from - 1; at < until; ++at) {
        const std::uint64_t seed = 8000000 + k * 1000 + at;
        std::vector<Suspect> clean = nightly.suspects(at);
        if (at < from) continue;
        const double shift = std::log1p(step) * (at % 2 == 0 ? 1 : -1);
        const std::size_t series = seed * 7919 % count;
        tasks.push_back({seed, std::move(clean), nightly.suspects(at, shift, series), series, shift});
      }
    }
    Confirmed sum;
    std::vector<Confirmed> parts(tasks.size());
    parallel(tasks.size(), [&](std::size_t i) {
      confirm_clean(kind, tasks[i].seed, tasks[i].clean, parts[i]);
      confirm_step(kind, tasks[i].seed, tasks[i].stepped, tasks[i].series, tasks[i].shift, parts[i]);
    });
    for (const Confirmed& one : parts) {
      sum.nights += one.nights, sum.suspects += one.suspects, sum.measured += one.measured, sum.wrong += one.wrong;
      sum.undecided += one.undecided, sum.pairs += one.pairs, sum.stepped += one.stepped;
      sum.suspected += one.suspected, sum.first += one.first, sum.opened += one.opened;
      sum.opening_pairs += one.opening_pairs;
    }
    const auto share = [](std::size_t n, std::size_t of) { return fmt::format("{:.3f}", share_of(n, of)); };
    fmt::print(
        "{}", row(std::string(name_of(kind)),
                  {fmt::format("{}", sum.nights), fmt::format("{:.2f}", share_of(sum.suspects, sum.nights)),
                   fmt::format("{}", sum.measured), fmt::format("{}", sum.wrong), share(sum.undecided, sum.measured),
                   per(sum.pairs, sum.measured), fmt::format("{}", sum.stepped), share(sum.suspected, sum.stepped),
                   share(sum.first, sum.stepped), share(sum.opened, sum.stepped), per(sum.opening_pairs, sum.opened)}));
    bound(sum.wrong <= binomial_limit(sum.nights, Options().false_alarms * confirm_share),
          fmt::format("{} events opened by confirmations in {} nights, {}", sum.wrong, sum.nights, name_of(kind)));
    if (kind != Kind::modes)
      bound(sum.stepped - sum.opened <= binomial_limit(sum.stepped, 0.05),
            fmt::format("{} of {} steps opened the same night, {}", sum.opened, sum.stepped, name_of(kind)));
  }
  fmt::print("\n");
}

void branches(std::size_t count, std::size_t blocks, const std::vector<Kind>& kinds) {
  fmt::print(
      "## A branch\n\n`history check --branch` of branches that ran on 1, 3 or 5 nights after night {}, without a "
      "change: "
      "{} "
      "series, {} branches each. At most 1 % of checks may fail, however many series they compare. And with a change "
      "in "
      "one series, in 1,000 cases: the shares of checks of 10, 1,000 and 10,000 series that fail, and in which it is "
      "at "
      "least a suspect. Several runs of one night count as one.\n\n",
      nights, count, blocks);
  std::vector<std::string> heads = {"nights", "false alarms per series", "suspects per series"};
  for (const std::size_t size : sizes) heads.push_back(fmt::format("checks of {} that fail", size));
  for (const double step : steps) heads.push_back(fmt::format("{:.0f} % slower", 100 * step));
  fmt::print("{}{}", row("noise", heads), rule(heads.size()));
  for (const Kind kind : kinds) {
    const std::array<Branches, 3> made = branches_of(kind, count, blocks);
    for (std::size_t k = 0; k < 3; ++k) {
      std::size_t alarms = 0, suspects = 0;
      std::vector<std::string> cells = {fmt::format("{}", lengths[k]), "", ""};
      for (const std::size_t size : sizes) {
        std::size_t checks = 0, failed = 0;
        for (const std::vector<BranchChange>& all : made[k].clean)
          for (auto first = all.begin(); all.end() - first >= static_cast<std::ptrdiff_t>(size); ++checks) {
            const auto last = first + static_cast<std::ptrdiff_t>(size);
            std::vector<BranchChange> check(first, last);
            first = last;
            judge_branch(check, {});
            const std::size_t wrong = count_of(check, {BranchVerdict::slower, BranchVerdict::faster});
            failed += wrong > 0;
            if (size != sizes[0]) continue;
            alarms += wrong;
            suspects += count_of(check, {BranchVerdict::suspect});
          }
        cells.push_back(checks == 0 ? "–" : fmt::format("{} of {}", failed, checks));
        if (kind != Kind::modes)
          bound(failed <= binomial_limit(checks, Options().false_alarms),
                fmt::format("{} of {} checks of {} series fail, {} nights, {}", failed, checks, size, lengths[k],
                            name_of(kind)));
      }
      cells[1] = rate(share_of(alarms, count * blocks));
      cells[2] = rate(share_of(suspects, count * blocks));
      for (const auto& slower : made[k].slower) cells.push_back(found_text(slower));
      fmt::print("{}", row(std::string(name_of(kind)), cells));
    }
  }
  fmt::print("\n");
}

}  // namespace assay::history
