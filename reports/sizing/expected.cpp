#include "reports/sizing/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::report::sizing {

namespace {

constexpr std::int64_t usual_gpus = 8;  // of a run that does not say
constexpr std::size_t nearest_runs = 5, min_others = 4;
constexpr double share_held = 0.8;

// What a utilization depends on, of a published run or of a request.
struct Setting {
  std::string hardware, precision;
  double parameters = 0, gpus = 0, seq = 0;
  double utilization = 0;             // of a run
  const PublishedRun* run = nullptr;  // null: a request
};

std::vector<Setting> settings_of(const Published& published, std::span<const HardwareSheet> sheets) {
  std::vector<Setting> all;
  for (const PublishedRun& run : published.training) {
    const auto sheet = std::ranges::find(sheets, run.hardware, &HardwareSheet::name);
    const auto peak = sheet == sheets.end() ? std::nullopt : peak_of(*sheet, run.precision);
    if (peak)
      all.push_back({run.hardware, run.precision, run.weights, static_cast<double>(run.gpus.value_or(usual_gpus)),
                     static_cast<double>(run.seq), run.utilization(*peak), &run});
  }
  return all;
}

double distance(const Setting& a, const Setting& b) {
  const auto doublings = [](double one, double other) { return std::abs(std::log2(one / other)); };
  return (a.hardware == b.hardware ? 0 : 2) + (a.precision == b.precision ? 0 : 1) +
         doublings(a.parameters, b.parameters) + doublings(a.gpus, b.gpus) / 2 + doublings(a.seq, b.seq) / 4;
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
    sum += weight * std::log(run->utilization);
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
  const bool known = std::ranges::any_of(all, [&](const Setting& each) { return each.hardware == asked.hardware; });
  std::vector<double> errors;
  for (const Setting& left_out : all) {
    const auto others = nearest(left_out, all, [&](const Setting& each) {
      return known ? &each != &left_out : each.hardware != left_out.hardware;
    });
    if (!others.empty()) errors.push_back(std::abs(std::log(left_out.utilization) - log_mean(left_out, others)));
  }
  // This rank of the errors, of one more than there are, holds the share of those to come.
  const auto rank = static_cast<std::size_t>(std::ceil(share_held * static_cast<double>(errors.size() + 1)));
  if (errors.size() < min_others || rank > errors.size()) return std::nullopt;
  std::ranges::sort(errors);
  const double factor = std::exp(errors[rank - 1]);
  const auto runs = nearest(asked, all, [](const Setting&) { return true; });
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
  if (work.seq <= 0 || sheet.kind != "gpu") return std::nullopt;
  return expected_of(
      {sheet.name, work.precision, work.parameters, static_cast<double>(gpus), static_cast<double>(work.seq)},
      settings_of(published, sheets));
}

LeftOut leave_one_out(std::span<const HardwareSheet> sheets, const Published& published) {
  const std::vector<Setting> all = settings_of(published, sheets);
  LeftOut found;
  std::vector<double> widths;
  for (const Setting& left_out : all) {
    std::vector<Setting> others;
    std::ranges::copy_if(all, std::back_inserter(others), [&](const Setting& each) { return &each != &left_out; });
    const auto expected = expected_of(left_out, others);
    if (!expected) continue;
    const Interval& range = *expected->value.interval;
    ++found.runs;
    found.held += range.low <= left_out.utilization && left_out.utilization <= range.high;
    widths.push_back(range.high / range.low);
  }
  if (widths.empty()) return found;
  const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
  std::ranges::nth_element(widths, middle);
  found.width = *middle;
  return found;
}

}  // namespace assay::report::sizing
