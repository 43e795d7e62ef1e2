#include "harness/history/events/events.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/record/content_hash.h"
#include "harness/statistics/distributions.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

namespace assay::history {

namespace {

constexpr double same_place = 0.05;  // a change may lie where it has this share of its own best weight

// A change of a series or of a group.
struct Item {
  bool group = false;
  std::size_t index = 0;
  const Change* change = nullptr;
  bool alarmed = false;
  std::optional<Measured> measured = {};
  std::optional<Night> over = {};  // since when it no longer matters
  bool used = false;

  bool measured_only() const { return measured && !change->opened; }
};

struct Weight {
  std::size_t gap = 0;  // between nights gap and gap + 1 of all nights
  double weight = 0;
};

// The gaps between all nights of any series. A series that missed nights has equal weight in each that it spans.
class Gaps {
 public:
  explicit Gaps(const std::vector<TrackedSeries>& series) {
    std::set<Night> all;
    for (const TrackedSeries& one : series) all.insert(one.track.nights.begin(), one.track.nights.end());
    nights_.assign(all.begin(), all.end());
  }
  std::size_t count() const { return nights_.empty() ? 0 : nights_.size() - 1; }
  Night before(std::size_t gap) const { return nights_[gap]; }
  Night after(std::size_t gap) const { return nights_[gap + 1]; }

  std::vector<Weight> of(const Change& change) const {
    std::vector<Weight> all;
    const auto spread = [&](Night before, Night after, double weight) {
      for (std::size_t gap = place(before); gap < count() && nights_[gap + 1] <= after; ++gap)
        all.push_back({gap, weight});
    };
    for (const Change::Gap& gap : change.gaps) spread(gap.before, gap.after, gap.weight);
    if (all.empty()) spread(change.last_before, change.first_after, 1);
    return all;
  }

 private:
  std::size_t place(Night night) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(nights_, night) - nights_.begin());
  }
  std::vector<Night> nights_;
};

double best_of(const std::vector<Weight>& weights) {
  double best = 0;
  for (const Weight& one : weights) best = std::max(best, one.weight);
  return best;
}

bool lies_in(const std::vector<Weight>& weights, std::size_t gap) {
  for (const Weight& one : weights)
    if (one.gap == gap) return one.weight >= same_place * best_of(weights);
  return false;
}

// When later changes of the series took the step back.
std::optional<Night> undone_at(const SeriesState& state, const Change& change) {
  if (change.stage == Stage::recovered) return change.closed;
  double left = change.shift;
  for (const Change& later : state.changes) {
    if (later.first_after <= change.first_after || later.stage == Stage::suspect || later.stage == Stage::recovered)
      continue;
    left += later.shift;
    if (std::abs(left) <= recovered_share * std::abs(change.shift)) return later.first_after;
  }
  return std::nullopt;
}

// A regime begins with several nights, so at first it may begin before the step that its nights show most clearly.
Change placed(Change change) {
  const auto likeliest = std::ranges::max_element(change.gaps, {}, &Change::Gap::weight);
  if (likeliest != change.gaps.end() && likeliest->after > change.first_after)
    change.last_before = likeliest->before, change.first_after = likeliest->after;
  return change;
}

// Whether `history confirm` has dismissed this change of this series.
bool is_dismissed(const std::vector<Reported>& reported, const std::string& series, const Change& change) {
  return std::ranges::any_of(reported, [&](const Reported& one) {
    return one.state == EventState::dismissed && (one.kind == EventKind::slower) == (change.shift < 0) &&
           one.last_before < change.first_after && one.first_after > change.last_before &&
           std::ranges::find(one.series, series) != one.series.end();
  });
}

// A step that was measured side by side, as the nights of its series show it.
struct MeasuredStep {
  Change change;
  std::optional<Night> back = {};  // when the figures were back
  bool is_back = false;            // on the last night
};

// The step of a series that has nights on both sides of the gap. The nights up to that of the measurement show the
// step, later ones whether it is over.
MeasuredStep measured_step(const TrackedSeries& series, Night last_before, Night first_after, const Measured& measured,
                           const Options& options) {
  constexpr std::size_t level_nights = 14, noise_nights = 28, fewest = 3, most = 28;
  const std::span<const double> values = series.track.values;
  const std::size_t before = *series.at_or_before(last_before), after = *series.at_or_after(first_after);
  const auto last_of = [&](std::size_t end, std::size_t count) {
    return values.subspan(end - std::min(end, count), std::min(end, count));
  };
  const double level = median(last_of(before + 1, level_nights));
  const double sigma = robust_sigma(last_of(before + 1, noise_nights));
  const std::size_t confirmed = std::max(after, series.at_or_before(measured.night).value_or(after));
  // The night's figure may be an outlier, and the builds may differ by more than the night did: the smaller counts.
  const double seen = median(values.subspan(after, confirmed + 1 - after)) - level;
  const double size =
      std::max({options.tolerance, 0.001, std::min(std::abs(measured.ratio), measured.ratio < 0 ? -seen : seen)});
  const double step = std::copysign(size, measured.ratio);
  // The standard error of a median, 1.25 sigma / sqrt(n), is to be a third of the way from the step to what is back.
  const double nights = std::pow(3 * 1.25 * sigma / ((1 - recovered_share) * size), 2);
  const auto window = static_cast<std::size_t>(std::clamp(std::ceil(nights), double{fewest}, double{most}));
  const double error =
      1.96 * 1.25 * sigma * std::sqrt(1 / static_cast<double>(confirmed + 1 - after) + 1.0 / level_nights);
  MeasuredStep made{{.last_before = last_before,
                     .first_after = first_after,
                     .suspected = first_after,
                     .shift = step,
                     .interval = {step - error, step + error}}};
  for (std::size_t night = confirmed + 1; night < values.size(); ++night) {
    const double left = (median(last_of(night + 1, std::min(window, night + 1 - after))) - level) / step;
    made.is_back = left <= recovered_share;
    if (made.is_back && !made.back) made.back = series.track.nights[night];
  }
  return made;
}

// Lets what `history confirm` has measured alarm until the figures are back, whether the detector still sees the change
// or not (`steps` keeps those). What the nights have opened besides is open again if the figures do not stay.
void add_measured(std::vector<Item>& items, std::deque<Change>& steps, const std::vector<TrackedSeries>& series,
                  std::vector<Reported> reported, const Options& options) {
  const SeriesNames names(series);
  std::ranges::stable_sort(reported, [](const auto& a, const auto& b) { return a.opened > b.opened; });
  for (const Reported& report : reported)
    for (const auto& [name, figure] : report.measured) {
      const auto& measured = figure;  // so that lambdas may capture it
      const auto index = names.across(name, report.last_before, report.first_after);
      if (!index) continue;
      const MeasuredStep step =
          measured_step(series[*index], report.last_before, report.first_after, measured, options);
      const auto same = [&](const Item& item) {
        return !item.group && item.index == *index && (item.change->shift < 0) == (measured.ratio < 0) &&
               report.near(item.change->last_before, item.change->first_after);
      };
      const auto again = [&](const Item& item) { return item.measured && same(item); };
      if (std::ranges::any_of(items, again)) continue;
      const auto item = std::ranges::find_if(items, same);
      if (item == items.end() || (step.back && !item->change->opened)) {
        items.push_back({false, *index, &steps.emplace_back(step.change), true, measured, step.back});
        continue;
      }
      item->alarmed = true;
      item->measured = measured;
      if (!step.back)
        item->over.reset();
      else if (!item->over && step.is_back)
        item->over = step.back;
    }
}

// When other hardware took the step back: the detector does not compare across its replacement.
std::optional<Night> replaced_and_back(const TrackedSeries& series, const Change& change, const Options& options) {
  const auto& nights = series.track.replaced;
  const auto replaced = std::ranges::upper_bound(nights, change.first_after);
  if (replaced == nights.end() || !series.at_or_before(change.last_before)) return std::nullopt;
  return measured_step(series, change.last_before, change.first_after, {change.shift, *replaced - 1}, options).back;
}

std::vector<Item> items_of(const std::vector<TrackedSeries>& series, const Analysis& analysis, const Options& options) {
  std::vector<Item> items;
  const auto add = [&](bool group, std::size_t index, const SeriesState& state) {
    for (const Change& change : state.changes) {
      if (group && !change.opened) continue;
      auto over = undone_at(state, change);
      if (!over && !group && change.opened) over = replaced_and_back(series[index], change, options);
      items.push_back({group, index, &change, change.opened.has_value(), {}, over});
    }
  };
  for (std::size_t i = 0; i < analysis.series.size(); ++i) add(false, i, analysis.series[i]);
  for (std::size_t i = 0; i < analysis.groups.size(); ++i) add(true, i, analysis.groups[i]);
  return items;
}

// Whether the event's series are of the group, and at least half of it.
bool is_most_of(const TrackedGroup& group, const Event& event) {
  const std::set<std::size_t> members(group.group.members.begin(), group.group.members.end());
  return 2 * event.series.size() >= members.size() &&
         std::ranges::all_of(event.series, [&](const EventSeries& one) { return members.contains(one.series); });
}

std::string subject_of(const Event& event, const std::vector<TrackedSeries>& series,
                       const std::vector<TrackedGroup>& groups) {
  if (event.series.size() == 1) return series[event.series.front().series].name;
  // The smallest group that alarmed and that the series make up, else what they have in common.
  const TrackedGroup* smallest = nullptr;
  for (const std::size_t index : event.groups)
    if ((event.series.empty() || is_most_of(groups[index], event)) &&
        (!smallest || groups[index].group.members.size() < smallest->group.members.size()))
      smallest = &groups[index];
  if (smallest) return smallest->name;
  std::set<std::string> families, machines;
  for (const EventSeries& one : event.series) {
    families.insert(series[one.series].identity.family);
    machines.insert(series[one.series].identity.machine);
  }
  const auto alike = std::ranges::count_if(series, [&](const TrackedSeries& one) {
    return families.contains(one.identity.family) && machines.contains(one.identity.machine);
  });
  std::string what = fmt::format("{} series", event.series.size());
  if (families.size() == 1)
    what = 2 * event.series.size() < static_cast<std::size_t>(alike) ? what + " of " + *families.begin()
                                                                     : *families.begin();
  return fmt::format("{} on {}", what, machines.size() == 1 ? *machines.begin() : plural(machines.size(), "machine"));
}

class Grouping {
 public:
  // Changes below `smallest` join no event that they have not opened.
  Grouping(const std::vector<TrackedSeries>& series, const std::vector<TrackedGroup>& groups, const Analysis& analysis,
           double smallest)
      : series_(series), groups_(groups), analysis_(analysis), smallest_(smallest), gaps_(series) {}

  // One event per common gap of the items that `seeds` picks; others may join, except where no more than a measurement
  // of some series is known.
  std::vector<Event> events(std::vector<Item>& items, bool slower, auto seeds) {
    std::vector<std::vector<Weight>> weights;
    for (const Item& item : items) weights.push_back(gaps_.of(*item.change));
    std::vector<Event> all;
    while (true) {
      std::vector<double> sums(gaps_.count(), 0);
      for (std::size_t i = 0; i < items.size(); ++i)
        if (!items[i].used && (items[i].change->shift < 0) == slower && seeds(items[i]))
          for (const Weight& one : weights[i]) sums[one.gap] += one.weight;
      const auto largest = std::ranges::max_element(sums);
      if (largest == sums.end() || *largest <= 0) return all;
      const auto gap = static_cast<std::size_t>(largest - sums.begin());
      std::vector<Item*> here;
      for (std::size_t i = 0; i < items.size(); ++i)
        if (!items[i].used && (items[i].change->shift < 0) == slower && lies_in(weights[i], gap))
          here.push_back(&items[i]);
      const bool open_to_others =
          std::ranges::any_of(here, [&](Item* item) { return seeds(*item) && !item->measured_only(); });
      std::vector<const Item*> taken;
      for (Item* item : here)
        if (seeds(*item) || (open_to_others && std::abs(item->change->shift) >= smallest_)) {
          item->used = true;
          taken.push_back(item);
        }
      all.push_back(event_of(taken, gap, slower));
    }
  }

 private:
  Event event_of(const std::vector<const Item*>& items, std::size_t gap, bool slower) {
    Event event;
    event.kind = slower ? EventKind::slower : EventKind::faster;
    event.last_before = gaps_.before(gap);
    event.first_after = gaps_.after(gap);
    bool alarmed = false, active = false;
    std::tuple<Night, std::string> first{INT32_MAX, ""};
    std::set<std::size_t> back;  // series that are over
    std::vector<double> group_shifts;
    std::optional<Interval> group_interval;
    for (const Item* item : items) {
      const Change& change = *item->change;
      alarmed = alarmed || item->alarmed;
      if (item->alarmed) active = active || !item->over;
      event.confirmed = event.confirmed || item->measured;
      if (item->over) event.closed = std::max(event.closed.value_or(*item->over), *item->over);
      const std::string name = item->group ? groups_[item->index].name : series_[item->index].name;
      if (item->alarmed || change.stage == Stage::small)
        first = std::min(first, std::tuple(change.opened.value_or(change.suspected), name));
      if (item->group) {
        event.groups.push_back(item->index);
        group_shifts.push_back(change.shift);
        group_interval = change.interval;
      } else {
        event.series.push_back({item->index, change.shift, change.interval, change.p, item->alarmed, item->measured});
        if (item->over) back.insert(item->index);
      }
    }
    if (!group_shifts.empty()) {
      event.shift = median(group_shifts);
      event.interval = group_interval;
      add_members(event, *event.shift);
    }
    if (active) leave_out_what_is_back(event, back);
    finish_series(event, series_);
    event.opened = std::get<0>(first);
    event.id = event_id(name_of(event.kind), event.opened, std::get<1>(first));
    event.state = active ? EventState::open : alarmed ? EventState::recovered : EventState::small;
    if (active || !alarmed) event.closed.reset();
    event.subject = subject_of(event, series_, groups_);
    event.detail = counted(event);
    return event;
  }

  // "5 instead of 0": counts are exact, and a share of nothing says nothing. Empty for other figures.
  std::string counted(const Event& event) const {
    if (event.series.empty() || !series_[event.series.front().series].track.count) return "";
    const TrackedSeries& one = series_[event.series.front().series];
    const auto before = one.at_or_before(event.last_before), after = one.at_or_after(event.first_after);
    if (!before || !after) return "";
    return fmt::format("{} instead of {}", one.figure(one.track.values[*after]), one.figure(one.track.values[*before]));
  }

  // Members of the groups that moved as the group did, though not enough to alarm by themselves.
  void add_members(Event& event, double shift) {
    std::set<std::size_t> there;
    for (const EventSeries& one : event.series) there.insert(one.series);
    for (const std::size_t group : event.groups)
      for (const std::size_t member : groups_[group].group.members) {
        if (!there.insert(member).second) continue;
        const auto moved =
            shift_across(series_[member], analysis_.series[member], member, event.last_before, event.first_after);
        if (moved && moved->shift * shift > 0 && std::abs(moved->shift) >= 0.5 * std::abs(shift))
          event.series.push_back(*moved);
      }
  }

  // An open event holds the series that are still shifted: not those in `back`, nor members of its groups whose last
  // nights are as before. If that is all, it is the group that is shifted, and they stay.
  void leave_out_what_is_back(Event& event, const std::set<std::size_t>& back) const {
    constexpr std::size_t last_nights = 7, level_nights = 14;
    const auto is_back = [&](const EventSeries& one) {
      if (back.contains(one.series)) return true;
      if (one.alarmed || one.measured) return false;
      const TrackedSeries& series = series_[one.series];
      const std::span<const double> values = series.track.values;
      const auto before = series.at_or_before(event.last_before), after = series.at_or_after(event.first_after);
      if (!before || !after || values.size() - *after < level_nights) return false;
      const std::size_t from = *before + 1 - std::min(*before + 1, level_nights);
      const double left = median(values.last(last_nights)) - median(values.subspan(from, *before + 1 - from));
      return left / one.shift <= recovered_share;
    };
    if (!std::ranges::all_of(event.series, is_back)) event.back = std::erase_if(event.series, is_back);
  }

  const std::vector<TrackedSeries>& series_;
  const std::vector<TrackedGroup>& groups_;
  const Analysis& analysis_;
  double smallest_;
  Gaps gaps_;
};

// How many nights the change would need at its size: its z grows with the root of their number.
std::optional<int> nights_needed(const TrackedSeries& series, const Change& change, double threshold) {
  if (!(change.p > 0) || !(change.p < 1) || !(threshold > 0)) return std::nullopt;
  const double z = normal_upper_quantile(change.p / 2);
  const double wanted = normal_upper_quantile(threshold / 2);
  const auto& nights = series.track.nights;
  const auto since = nights.end() - std::ranges::lower_bound(nights, change.first_after);
  if (z <= 0 || since <= 0) return std::nullopt;
  const double all = static_cast<double>(since) * std::pow(wanted / z, 2);
  if (!(all < static_cast<double>(max_recent))) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(all - static_cast<double>(since))));
}

}  // namespace

bool Event::alarms() const {
  if (state != EventState::open) return false;
  return kind == EventKind::slower || kind == EventKind::broke ||
         (kind == EventKind::changed_protocol && shift.value_or(0) < 0);
}

std::string event_id(std::string_view kind, Night night, std::string_view subject) {
  const std::uint64_t hash = hash64(subject, hash64(fmt::format("{} {}", kind, night)));
  return fmt::format("{:08x}", (hash ^ hash >> 32) & 0xffffffffu);
}

void finish_series(Event& event, const std::vector<TrackedSeries>& series) {
  std::ranges::stable_sort(event.series,
                           [](const auto& a, const auto& b) { return std::abs(a.shift) > std::abs(b.shift); });
  std::set<std::string> machines;
  std::vector<double> shifts, lows, highs;
  for (const EventSeries& one : event.series) {
    machines.insert(series[one.series].identity.machine);
    shifts.push_back(one.shift), lows.push_back(one.interval.low), highs.push_back(one.interval.high);
  }
  event.machines.assign(machines.begin(), machines.end());
  if (shifts.empty()) return;
  event.shift = median(shifts);
  event.interval = Interval{median(lows), median(highs)};
}

EventSeries change_of(std::size_t series, double shift, double sigma, std::size_t before, std::size_t after) {
  // The median's standard error is 1.25 times the mean's.
  const double error =
      1.96 * 1.25 * sigma * std::sqrt(1 / static_cast<double>(after) + 1 / static_cast<double>(before));
  return {series, shift, {shift - error, shift + error}, 1, false};
}

std::optional<EventSeries> shift_across(const TrackedSeries& series, const SeriesState& state, std::size_t index,
                                        Night last_before, Night first_after) {
  constexpr std::size_t nights = 14;
  const auto before = series.at_or_before(last_before), after = series.at_or_after(first_after);
  if (!before || !after) return std::nullopt;
  const auto& values = series.track.values;
  const std::size_t from = *before + 1 - std::min(*before + 1, nights),
                    until = std::min(values.size(), *after + nights);
  const std::span all(values);
  const double shift = median(all.subspan(*after, until - *after)) - median(all.subspan(from, *before + 1 - from));
  return change_of(index, shift, state.sigma, *before + 1 - from, until - *after);
}

EventSet step_events(const std::vector<TrackedSeries>& series, const std::vector<TrackedGroup>& groups,
                     const Analysis& analysis, const std::vector<Reported>& reported, const Options& options) {
  std::vector<Item> items = items_of(series, analysis, options);
  std::deque<Change> steps;
  add_measured(items, steps, series, reported, options);
  Grouping grouping(series, groups, analysis, options.tolerance / 2);
  EventSet set;
  for (const bool slower : {true, false}) {
    for (Event& event : grouping.events(items, slower, [](const Item& item) { return item.alarmed; }))
      set.events.push_back(std::move(event));
    const auto small = [](const Item& item) { return item.change->stage == Stage::small && !item.over; };
    for (Event& event : grouping.events(items, slower, small)) set.events.push_back(std::move(event));
  }
  double threshold = analysis.nights.empty() ? 0 : analysis.nights.back().threshold;
  for (const Item& item : items) {
    if (item.used || item.group || item.change->stage != Stage::suspect) continue;
    const TrackedSeries& one = series[item.index];
    const Change change = placed(*item.change);
    Suspect suspect{event_id("suspect", change.same_night ? change.first_after : change.suspected, one.name),
                    item.index, change, nights_needed(one, change, threshold)};
    suspect.dismissed = is_dismissed(reported, one.name, change);
    set.suspects.push_back(std::move(suspect));
  }
  std::ranges::stable_sort(set.suspects, [](const Suspect& a, const Suspect& b) { return a.change.p < b.change.p; });
  return set;
}

}  // namespace assay::history
