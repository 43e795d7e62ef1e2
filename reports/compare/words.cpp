#include "reports/compare/words.h"

#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report::comparison {

namespace {

constexpr double max_ratio = 9999;
constexpr double max_percent = 999;

// Decimals of a percentage known to +- half: up to the first digit that half affects.
int places(double half_percent) {
  if (!(half_percent > 0)) return 2;
  return std::clamp(static_cast<int>(-std::floor(std::log10(half_percent))), 0, 2);
}

double half_percent(const Interval& ci95) { return 50 * (ci95.high - ci95.low); }

std::string signed_number(double percent, int digits) {
  const std::string text = fmt::format("{:+.{}f}", percent, digits);
  const bool zero = text.find_first_not_of("+-0.") == std::string::npos;
  return zero ? text.substr(1) : text;  // no "-0.0"
}

}  // namespace

std::string change_text(double ratio, const std::optional<Interval>& ci95) {
  if (ratio >= 2) return ratio > max_ratio ? fmt::format("{:.1e} x", ratio) : fmt::format("{:.3g} x", ratio);
  return signed_number(100 * (ratio - 1), ci95 ? places(half_percent(*ci95)) : 1) + " %";
}

std::string interval_text(const std::optional<Interval>& ci95) {
  if (!ci95) return "–";
  const double half = half_percent(*ci95);
  const int digits = half >= 10 ? 0 : std::min(2, places(half) + 1);
  const auto end = [&](double ratio) {
    const double percent = 100 * (ratio - 1);
    return percent > max_percent ? fmt::format("> +{:.0f}", max_percent) : signed_number(percent, digits);
  };
  return end(ci95->low) + " .. " + end(ci95->high) + " %";
}

std::string detectable_text(const std::optional<double>& detectable) {
  if (!detectable) return "–";
  if (100 * *detectable > max_percent) return fmt::format("> {:.0f} %", max_percent);
  return plus_minus(*detectable);
}

}  // namespace assay::report::comparison
