#include "reports/sizing/forecast.h"

#include "harness/machine/links.h"
#include "reports/cost/cost.h"
#include "reports/sizing/here.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace assay::report::sizing {

namespace {

std::optional<double> rate_of_links(const HardwareSheet& sheet) {
  const HardwareSheet::Link* link = fastest_link(sheet);
  return link ? std::optional(link->bytes_per_second) : std::nullopt;
}

// Published runs on this hardware, if the work lies among them.
std::vector<const PublishedRun*> runs_like(const HardwareSheet& sheet, const Work& work, std::int64_t gpus,
                                           const Published& published) {
  constexpr double near = 2;
  constexpr std::size_t min_runs = 2;  // one alone says nothing about others
  std::vector<const PublishedRun*> runs;
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  std::int64_t max_seq = 0, max_gpus = 0;
  for (const PublishedRun& run : published.training) {
    if (run.hardware != sheet.name || run.precision != work.precision) continue;
    runs.push_back(&run);
    smallest = std::min(smallest, run.weights);
    largest = std::max(largest, run.weights);
    max_seq = std::max(max_seq, run.seq);
    max_gpus = std::max(max_gpus, run.gpus.value_or(0));
  }
  const bool among = runs.size() >= min_runs && work.parameters * near >= smallest &&
                     work.parameters <= largest * near && work.seq > 0 && work.seq <= max_seq && gpus <= max_gpus;
  return among ? runs : std::vector<const PublishedRun*>();
}

// Factors of speed from one sheet to the other.
std::optional<Interval> speed_ratio(const HardwareSheet& from, const HardwareSheet& to, const Work& work,
                                    std::int64_t gpus) {
  std::optional<Interval> range;
  const auto add = [&](std::optional<double> theirs, std::optional<double> ours) {
    if (!theirs || !ours) return;
    const double ratio = *ours / *theirs;
    range = Interval{std::min(range ? range->low : ratio, ratio), std::max(range ? range->high : ratio, ratio)};
  };
  const auto theirs = peak_of(from, work.precision), ours = peak_of(to, work.precision);
  if (!theirs || !ours) return std::nullopt;
  add(theirs, ours);
  add(from.memory_bandwidth, to.memory_bandwidth);
  if (gpus > 1) add(rate_of_links(from), rate_of_links(to));
  return range;
}

// Seconds of a step at speeds between these.
Range seconds_at(const Work& work, const Interval& speed) { return {work.items / speed.high, work.items / speed.low}; }

Interval ends_of(const Estimate& estimate) {
  return estimate.interval.value_or(Interval{estimate.value, estimate.value});
}

// The part of the measured speed that remains if another number of ranks works together.
Interval at_ranks(const Measured& measured, std::int64_t gpus, const Published& published) {
  Interval speed = ends_of(measured.items_per_gpu);
  if (!measured.ranks || *measured.ranks == gpus) return speed;
  if (gpus > *measured.ranks)
    speed = {speed.low * published.scaling.low, speed.high * published.scaling.high};
  else
    speed = {speed.low / published.scaling.high, speed.high / published.scaling.low};
  return speed;
}

std::string source_of(const Measured& measured, std::int64_t gpus, const Published& published) {
  if (!measured.ranks || *measured.ranks == gpus) return measured.source;
  return fmt::format("{}, measured on {} and taken to {} by what others kept: {}", measured.source, *measured.ranks,
                     gpus, published.scaling.source);
}

// What the steps' time becomes by checkpoints, idle time and restarts.
double lost(const Published& published, std::int64_t gpus, double checkpoints, double idle, double restarts) {
  return 1 + checkpoints + idle + restarts * static_cast<double>(gpus) * published.hours_lost;
}

double lost_at_least(const Published& published, std::int64_t gpus) {
  return lost(published, gpus, published.checkpoints.low, published.idle.low, published.restarts.low);
}

double lost_at_most(const Published& published, std::int64_t gpus) {
  return lost(published, gpus, published.checkpoints.high, published.idle.high, published.restarts.high);
}

double hours_of_steps(const Work& work, std::int64_t gpus, double items) {
  return items / (work.items * static_cast<double>(gpus)) / seconds_per_hour;
}

// `measured`, if not null, was measured on `from`.
void add_expected(StepTime& step, const HardwareSheet& from, const HardwareSheet& sheet,
                  std::span<const HardwareSheet> sheets, const Measured* measured, const Work& work, std::int64_t gpus,
                  const Published& published) {
  const auto set = [&](const Estimate& speed, std::string source) {
    const Interval ends = ends_of(speed);
    const auto within = [&](double seconds) {
      return std::clamp(seconds, step.seconds.low, step.seconds.high.value_or(std::numeric_limits<double>::max()));
    };
    step.expected = {
        {within(work.items / speed.value), Interval{within(work.items / ends.high), within(work.items / ends.low)}},
        std::move(source)};
  };
  if (measured && from.name == sheet.name && (!measured->ranks || *measured->ranks == gpus))
    return set(measured->items_per_gpu, measured->source);
  const auto likely = expected_utilization(sheet, sheets, work, gpus, published);
  if (!likely) return;
  const double peak = peak_of(sheet, work.precision).value();
  const auto speed_at = [&](double utilization) { return utilization * peak * work.items / work.flops; };
  if (!measured) {
    const Interval ends = ends_of(likely->value);
    return set({speed_at(likely->value.value), Interval{speed_at(ends.low), speed_at(ends.high)}}, likely->source);
  }
  const auto there = expected_utilization(from, sheets, work, measured->ranks.value_or(gpus), published);
  if (!there) return;
  const double ratio = likely->value.value * peak / (there->value.value * peak_of(from, work.precision).value());
  const double speed = measured->items_per_gpu.value * ratio;
  // The published runs say what is likely of the ratio, not how far it may be off: that the bounds say.
  set({speed, Interval{work.items / *step.seconds.high, work.items / step.seconds.low}},
      fmt::format("{}, times {:.3g}: what published runs make likely of the ratio", measured->source, ratio));
}

}  // namespace

double least_seconds(const HardwareSheet& sheet, const Work& work) {
  double seconds = work.flops / peak_of(sheet, work.precision).value();
  if (sheet.memory_bandwidth) seconds = std::max(seconds, work.bytes / *sheet.memory_bandwidth);
  if (const auto link = rate_of_links(sheet)) seconds = std::max(seconds, work.exchanged / *link);
  if (const HardwareSheet::Link* link = pcie_link(sheet))
    seconds = std::max(seconds, work.offloaded / link->bytes_per_second);
  return seconds;
}

StepTime from_sheet(const HardwareSheet& sheet, const Work& work, std::int64_t gpus, const Published& published) {
  const double peak = peak_of(sheet, work.precision).value();
  StepTime step{{least_seconds(sheet, work), std::nullopt}, Basis::sheet, {}};
  if (work.offloaded > 0) {
    step.source = fmt::format(
        "a lower bound from {}'s sheet, with what offload sends over {}; no upper one: nothing "
        "like it is published",
        sheet.name, pcie_link(sheet) ? pcie_link(sheet)->name : "a link that the sheet does not give");
    return step;
  }
  const std::vector<const PublishedRun*> runs = runs_like(sheet, work, gpus, published);
  if (runs.empty()) {
    step.source = fmt::format("a lower bound from {}; no upper one: nothing like it is published",
                              sheet.name == here_name ? "the rates measured here" : sheet.name + "'s sheet");
    return step;
  }
  const auto slowest = *std::ranges::min_element(
      runs, [&](const PublishedRun* a, const PublishedRun* b) { return a->utilization(peak) < b->utilization(peak); });
  const double mfu = slowest->utilization(peak);
  step.seconds.high = std::max(step.seconds.low, work.flops / (mfu * peak));
  step.source =
      fmt::format("a lower bound from {}'s sheet; upper: {:.1f} % of its peak, the least of {} published runs ({}; {})",
                  sheet.name, 100 * mfu, runs.size(), slowest->model, slowest->source);
  return step;
}

StepTime from_record(const Measured& measured, const Work& work, std::int64_t gpus, const Published& published) {
  return {seconds_at(work, at_ranks(measured, gpus, published)), measured.basis, source_of(measured, gpus, published)};
}

std::optional<StepTime> from_other(const HardwareSheet& from, const HardwareSheet& sheet, const Measured& measured,
                                   const Work& work, std::int64_t gpus, const Published& published) {
  const auto ratio = speed_ratio(from, sheet, work, gpus);
  if (!ratio) return std::nullopt;
  const Interval speed = at_ranks(measured, gpus, published);
  Range seconds = seconds_at(work, {speed.low * ratio->low, speed.high * ratio->high});
  const double least = least_seconds(sheet, work);
  seconds = {std::max(seconds.low, least), std::max(*seconds.high, least)};
  return StepTime{
      seconds, Basis::anchor,
      fmt::format("{} on {}, times {:.3g} to {:.3g}: the least and greatest ratio of the sheets' peaks and bandwidths",
                  source_of(measured, gpus, published), from.name, ratio->low, ratio->high)};
}

StepTime forecast(const HardwareSheet& sheet, std::span<const HardwareSheet> sheets, std::span<const Measured> measured,
                  const Work& work, std::int64_t gpus, const Published& published) {
  // Neither what was measured nor what was published is of steps that wait for the host.
  if (work.offloaded > 0) return from_sheet(sheet, work, gpus, published);
  const Measured* basis = nullptr;
  const auto distance = [&](const Measured& each) {
    if (!each.ranks) return each.basis == Basis::records ? 0.0 : std::numeric_limits<double>::max();
    return std::abs(std::log(static_cast<double>(*each.ranks) / static_cast<double>(gpus)));
  };
  for (const Measured& each : measured)
    if (each.hardware == sheet.name && (!basis || distance(each) < distance(*basis))) basis = &each;
  if (basis) {
    StepTime step = from_record(*basis, work, gpus, published);
    add_expected(step, sheet, sheet, sheets, basis, work, gpus, published);
    return step;
  }
  std::optional<StepTime> best;
  const HardwareSheet* best_from = &sheet;
  for (const Measured& each : measured) {
    const auto from = std::ranges::find(sheets, each.hardware, &HardwareSheet::name);
    // Rates that were measured here and those of other sheets are no ratio of like to like.
    if (from == sheets.end() || from->name == here_name || sheet.name == here_name) continue;
    const auto step = from_other(*from, sheet, each, work, gpus, published);
    const auto width = [](const StepTime& one) { return *one.seconds.high / one.seconds.low; };
    if (!step || (best && width(*step) >= width(*best))) continue;
    best = step;
    basis = &each;
    best_from = &*from;
  }
  if (!best) best = from_sheet(sheet, work, gpus, published);
  add_expected(*best, *best_from, sheet, sheets, basis, work, gpus, published);
  return *best;
}

Range hours_of(const StepTime& step, const Work& work, std::int64_t gpus, double items, const Published& published) {
  Range hours = scaled(step.seconds, hours_of_steps(work, gpus, items));
  hours.low *= lost_at_least(published, gpus);
  if (hours.high) *hours.high *= lost_at_most(published, gpus);
  return hours;
}

std::optional<Estimate> expected_hours(const StepTime& step, const Work& work, std::int64_t gpus, double items,
                                       const Published& published) {
  if (!step.expected) return std::nullopt;
  const double scale = hours_of_steps(work, gpus, items);
  const double low = scale * lost_at_least(published, gpus), high = scale * lost_at_most(published, gpus);
  const Interval ends = ends_of(step.expected->value);
  return Estimate{step.expected->value.value * (low + high) / 2, Interval{ends.low * low, ends.high * high}};
}

bool surely_below(const Range& a, const Range& b) { return a.high && *a.high < b.low; }

Range scaled(const Range& range, double factor) {
  return {range.low * factor, range.high ? std::optional(*range.high * factor) : std::nullopt};
}

Estimate scaled(const Estimate& estimate, double factor) {
  return {estimate.value * factor, scaled(estimate.interval, factor)};
}

Range break_even(const Range& first_usd, const Range& hours) {
  Range price{0, std::nullopt};
  if (hours.high) price.low = first_usd.low / *hours.high;
  if (first_usd.high) price.high = *first_usd.high / hours.low;
  return price;
}

}  // namespace assay::report::sizing
