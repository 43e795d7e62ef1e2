#include "reports/sizing/expected.h"

#include "reports/sizing/here.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::report::sizing {

namespace {

constexpr std::int64_t usual_gpus = 8;  // of a run that does not say
constexpr std::size_t nearest_runs = 10, min_others = 4;
constexpr double share_held = 0.9;
constexpr double power_of_peak = 0.2;  // memory and links have not become faster by as much as products

// What a utilization depends on, of a published run or of a request.
struct Setting {
  std::string hardware, precision;
  double parameters = 0, gpus = 0, seq = 0;
  double peak = 0;                    // FLOP/s
  double utilization = 0;             // of a run
  const PublishedRun* run = nullptr;  // null: a request
};

std::vector<Setting> settings_of(const Published& published, std::span<const HardwareSheet> sheets) {
  std::vector<Setting> all;
  for (const PublishedRun& run : published.training) {
    const auto sheet = std::ranges::find(sheets, run.hardware, &HardwareSheet::name);
    auto peak = sheet == sheets.end() ? std::nullopt : peak_of(*sheet, run.precision);
    if (!peak) continue;
    // Power grows with the clock and the square of the voltage, which grows with the clock.
    if (run.power_limit && sheet->tdp_watts) *peak *= std::cbrt(std::min(1.0, *run.power_limit / *sheet->tdp_watts));
    all.push_back({run.hardware, run.precision, run.weights, static_cast<double>(run.gpus.value_or(usual_gpus)),
                   static_cast<double>(run.seq), *peak, run.utilization(*peak), &run});
  }
  return all;
}

double distance(const Setting& a, const Setting& b) {
  const auto doublings = [](double one, double other) { return std::abs(std::log2(one / other)); };
  return ((a.hardware == b.hardware ? 0 : 1) + (a.precision == b.precision ? 0 : 1) +
          doublings(a.parameters, b.parameters) + doublings(a.seq, b.seq)) /
             2 +
         doublings(a.gpus, b.gpus);
}

// Those that `take` accepts, nearest first; at most nearest_runs.
template <typename Take>
std::vector<const Setting*> nearest(const Setting& asked, const std::vector<Setting>& all, const Take& take) {
  std::vector<const Setting*> taken;
  for (const Setting& each : all)
    if (take(each)) taken.push_back(&each);
  std::ranges::stable_sort(taken, {}, [&](const Setting* each) { return distance(asked, *each); });
  taken.resize(std::min(taken.size(), nearest_runs));
  return taken;
}

double log_mean(const Setting& asked, const std::vector<const Setting*>& runs) {
  double sum = 0, weights = 0;
  for (const Setting* run : runs) {
    const double weight = 1 / (1 + distance(asked, *run));
    sum += weight * (std::log(run->utilization) + power_of_peak * std::log(run->peak / asked.peak));
    weights += weight;
  }
  return sum / weights;
}

bool is_among(const Setting& asked, const std::vector<Setting>& all) {
  const auto within = [&](double Setting::*member) {
    const auto [min, max] = std::ranges::minmax_element(all, {}, member);
    return asked.*member * 2 >= (*min).*member && asked.*member <= 2 * (*max).*member;
  };
  return !all.empty() && within(&Setting::parameters) && within(&Setting::gpus) && within(&Setting::seq);
}

std::optional<Expected> expected_of(const Setting& asked, const std::vector<Setting>& all) {
  if (!is_among(asked, all)) return std::nullopt;
  const auto runs = nearest(asked, all, [](const Setting&) { return true; });
  // A figure that rests on runs of its own hardware errs less than one that rests on others alone, so each is judged by
  // the errors of its own kind.
  const auto knows_hardware = [](const Setting& setting, const std::vector<const Setting*>& from) {
    return std::ranges::any_of(from, [&](const Setting* each) { return each->hardware == setting.hardware; });
  };
  const bool known = knows_hardware(asked, runs);
  std::vector<double> errors;
  for (const Setting& left_out : all) {
    const auto others = nearest(left_out, all, [&](const Setting& each) {
      return known ? &each != &left_out : each.hardware != left_out.hardware;
    });
    if (!others.empty() && known == knows_hardware(left_out, others))
      errors.push_back(std::abs(std::log(left_out.utilization) - log_mean(left_out, others)));
  }
  if (errors.size() < min_others) return std::nullopt;
  // This rank of the errors, of one more than there are, holds the share of those to come; of few, the largest stands
  // in.
  const auto rank =
      std::min(errors.size(), static_cast<std::size_t>(std::ceil(share_held * static_cast<double>(errors.size() + 1))));
  std::ranges::sort(errors);
  const double factor = std::exp(errors[rank - 1]);
  const double value = std::exp(log_mean(asked, runs));
  const Setting& first = *runs.front();
  return Expected{
      {value, Interval{value / factor, value * factor}},
      fmt::format("{:.0f} % of the peak, as {} published runs like it make likely; the nearest: {} on {} x {} at "
                  "{:.0f} % ({})",
                  100 * value, runs.size(), first.run->model, first.hardware,
                  first.run->gpus ? std::to_string(*first.run->gpus) : "?", 100 * first.utilization,
                  first.run->source)};
}

}  // namespace

std::optional<double> peak_of(const HardwareSheet& sheet, std::string_view precision) {
  const auto found = sheet.peak.find(precision == "fp8" ? "fp8_e4m3" : std::string(precision));
  return found == sheet.peak.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Expected> expected_utilization(const HardwareSheet& sheet, std::span<const HardwareSheet> sheets,
                                             const parallel::Work& work, std::int64_t gpus,
                                             const Published& published) {
  if (sheet.name == here_name) {
    if (!published.here) return std::nullopt;
    const double low = published.here->low, high = published.here->high;
    return Expected{{std::sqrt(low * high), Interval{low, high}}, published.here->source};
  }
  const auto peak = peak_of(sheet, work.precision);
  if (work.seq <= 0 || sheet.kind != "gpu" || !peak) return std::nullopt;
  return expected_of(
      {sheet.name, work.precision, work.parameters, static_cast<double>(gpus), static_cast<double>(work.seq), *peak},
      settings_of(published, sheets));
}

LeftOut leave_one_out(std::span<const HardwareSheet> sheets, const Published& published, const PriceOf& price_of) {
  const std::vector<Setting> all = settings_of(published, sheets);
  const auto without = [&](const Setting& asked, const Setting& other) {
    std::vector<Setting> rest;
    std::ranges::copy_if(all, std::back_inserter(rest),
                         [&](const Setting& each) { return &each != &asked && &each != &other; });
    return expected_of(asked, rest);
  };
  LeftOut found;
  std::vector<double> widths, errors;
  for (const Setting& left_out : all) {
    const auto expected = without(left_out, left_out);
    if (!expected) continue;
    const Interval& range = *expected->value.interval;
    ++found.runs;
    found.held += range.low <= left_out.utilization && left_out.utilization <= range.high;
    widths.push_back(range.high / range.low);
    errors.push_back(std::abs(expected->value.value / left_out.utilization - 1));
  }
  for (const Setting& a : all)
    for (const Setting& b : all) {
      const auto price_a = price_of(a.hardware), price_b = price_of(b.hardware);
      if (&a >= &b || a.hardware == b.hardware || !price_a || !price_b) continue;
      const auto expected_a = without(a, b), expected_b = without(b, a);
      if (!expected_a || !expected_b) continue;
      // FLOPs per USD.
      const double scale_a = a.peak / *price_a, scale_b = b.peak / *price_b;
      const Interval &range_a = *expected_a->value.interval, &range_b = *expected_b->value.interval;
      ++found.pairs;
      if (range_a.low * scale_a <= range_b.high * scale_b && range_b.low * scale_b <= range_a.high * scale_a)
        ++found.tied;
      else
        found.right +=
            (range_a.low * scale_a > range_b.high * scale_b) == (a.utilization * scale_a > b.utilization * scale_b);
    }
  const auto median = [](std::vector<double>& values) {
    if (values.empty()) return 0.0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
  };
  found.width = median(widths);
  found.error = median(errors);
  return found;
}

}  // namespace assay::report::sizing
