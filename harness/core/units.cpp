#include "harness/core/units.h"

#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

namespace assay {

namespace {

struct Unit {
  std::string_view name;
  double scale;
};

struct ByteUnit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::uint64_t kilo = 1000;
constexpr std::uint64_t kibi = 1024;
constexpr std::array<ByteUnit, 12> byte_units{{{"", 1},
                                               {"b", 1},
                                               {"kb", kilo},
                                               {"mb", kilo* kilo},
                                               {"gb", kilo* kilo* kilo},
                                               {"tb", kilo* kilo* kilo* kilo},
                                               {"pb", kilo* kilo* kilo* kilo* kilo},
                                               {"kib", kibi},
                                               {"mib", kibi* kibi},
                                               {"gib", kibi* kibi* kibi},
                                               {"tib", kibi* kibi* kibi* kibi},
                                               {"pib", kibi* kibi* kibi* kibi* kibi}}};

constexpr std::array<Unit, 9> time_units{
    {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}}};

struct Split {
  std::string_view number;
  std::string unit;  // lower case
};

// The number and its unit; the number is [-+]digits[.digits][e[+-]digits].
Split split(std::string_view text) {
  const std::string_view all = trim(text);
  std::size_t end = 0;
  const auto digits = [&] {
    while (end < all.size() && std::isdigit(static_cast<unsigned char>(all[end]))) ++end;
  };
  if (end < all.size() && (all[end] == '-' || all[end] == '+')) ++end;
  digits();
  if (end < all.size() && all[end] == '.') {
    ++end;
    digits();
  }
  if (end < all.size() && (all[end] == 'e' || all[end] == 'E')) {
    const std::size_t before = end++;
    if (end < all.size() && (all[end] == '-' || all[end] == '+')) ++end;
    const std::size_t first = end;
    digits();
    if (end == first) end = before;
  }
  return {all.substr(0, end), lower_case(trim(all.substr(end)))};
}

double finite_number(std::string_view number, std::string_view text, std::string_view what) {
  if (number.starts_with('+')) number.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error == std::errc::invalid_argument || end != number.data() + number.size())
    throw UsageError(fmt::format("{} is not {}", in_quotes(text), what));
  if (error == std::errc::result_out_of_range || !std::isfinite(value))
    throw UsageError(fmt::format("{} is out of range", in_quotes(text)));
  return value;
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  constexpr std::string_view what = "a size in bytes (\"4096\", \"64MiB\", \"1.5GB\")";
  const Split parts = split(text);
  const auto unit = std::ranges::find(byte_units, parts.unit, &ByteUnit::name);
  if (unit == byte_units.end() || parts.number.empty() || parts.number.find_first_of("eE") != std::string_view::npos)
    throw UsageError(fmt::format("{} is not {}", in_quotes(text), what));
  if (parts.number.front() == '-') throw UsageError(fmt::format("{} is negative", in_quotes(text)));

  // mantissa / 10^places * unit, in integers throughout.
  std::uint64_t mantissa = 0, divisor = 1;
  bool any = false, fraction = false;
  for (const char c : parts.number) {
    if (c == '.') fraction = true;
    if (!std::isdigit(static_cast<unsigned char>(c))) continue;
    any = true;
    if (__builtin_mul_overflow(mantissa, 10u, &mantissa) ||
        __builtin_add_overflow(mantissa, static_cast<std::uint64_t>(c - '0'), &mantissa) ||
        (fraction && __builtin_mul_overflow(divisor, 10u, &divisor)))
      throw UsageError(fmt::format("{} is out of range", in_quotes(text)));
  }
  if (!any) throw UsageError(fmt::format("{} is not {}", in_quotes(text), what));
  const std::uint64_t common = std::gcd(unit->bytes, divisor);
  divisor /= common;
  if (mantissa % divisor != 0) throw UsageError(fmt::format("{} is not a whole number of bytes", in_quotes(text)));
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(mantissa / divisor, unit->bytes / common, &bytes) ||
      bytes > static_cast<std::uint64_t>(INT64_MAX))
    throw UsageError(fmt::format("{} is out of range", in_quotes(text)));
  return static_cast<std::int64_t>(bytes);
}

double parse_seconds(std::string_view text) {
  constexpr std::string_view what = "a time (\"30s\", \"500ms\", \"2min\")";
  const Split parts = split(text);
  const auto unit = std::ranges::find(time_units, parts.unit, &Unit::name);
  if (unit == time_units.end()) throw UsageError(fmt::format("{} is not {}", in_quotes(text), what));
  const double value = finite_number(parts.number, text, what) * unit->scale;
  if (value < 0) throw UsageError(fmt::format("{} is negative", in_quotes(text)));
  if (!std::isfinite(value)) throw UsageError(fmt::format("{} is out of range", in_quotes(text)));
  return value;
}

double parse_fraction(std::string_view text) {
  constexpr std::string_view what = "a fraction (\"0.03\", \"3%\")";
  const Split parts = split(text);
  if (!parts.unit.empty() && parts.unit != "%") throw UsageError(fmt::format("{} is not {}", in_quotes(text), what));
  const double value = finite_number(parts.number, text, what);
  return parts.unit == "%" ? value / 100 : value;
}

std::int64_t parse_integer(std::string_view text) {
  const std::string_view number = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc::result_out_of_range) throw UsageError(fmt::format("{} is out of range", in_quotes(text)));
  if (number.empty() || error != std::errc() || end != number.data() + number.size())
    throw UsageError(fmt::format("{} is not an integer", in_quotes(text)));
  return value;
}

double parse_real(std::string_view text) {
  const Split parts = split(text);
  if (!parts.unit.empty()) throw UsageError(fmt::format("{} is not a number", in_quotes(text)));
  return finite_number(parts.number, text, "a number");
}

double parse_part(const std::string& place, const std::string& text) {
  const double part = parse_flag(place, text, parse_fraction);
  if (part < 0 || part >= 1)
    throw UsageError(fmt::format(
        "{}: {} is not a fraction from 0 to less than 100 %{}", place, text,
        part >= 1 && part < 100 && !text.ends_with('%') ? fmt::format("; did you mean {}%?", text) : std::string()));
  return part;
}

double parse_timeout(const std::string& place, const std::string& text) {
  const double seconds = parse_flag(place, text, parse_seconds);
  if (!(seconds > 0)) throw UsageError(fmt::format("{} {}: must be above 0", place, one_line(text)));
  return seconds;
}

namespace {

// `value` with as many digits as its uncertainty justifies; three significant digits if that is unknown.
std::string digits(double value, std::optional<double> half_width) {
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  int significant = 3;
  if (half_width && *half_width > 0 && std::isfinite(*half_width))
    significant = std::clamp(magnitude - static_cast<int>(std::floor(std::log10(*half_width))) + 1, 2, 4);
  const int places = significant - 1 - magnitude;
  if (places >= 0) {
    std::string text = fmt::format("{:.{}f}", value, std::min(places, 20));
    // Without an interval, trailing zeros would claim a precision: 2 GiB, not 2.00 GiB.
    if (!half_width && text.find('.') != std::string::npos) {
      text.erase(text.find_last_not_of('0') + 1);
      if (text.back() == '.') text.pop_back();
    }
    return text;
  }
  // Whole numbers keep every digit: 1234, not 1230.
  return fmt::format("{:.0f}", value);
}

// The scale that brings a number into [1, 1000), also after rounding.
const Unit& scale_for(double value, const Unit* units, std::size_t count) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(value) >= units[i].scale * 0.9995) best = i;
  return units[best];
}

constexpr std::array<Unit, 6> decimal_scales{{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}}};
constexpr std::array<Unit, 4> second_scales{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<Unit, 7> binary_scales{{{"B", 1},
                                             {"KiB", 1024.0},
                                             {"MiB", 1048576.0},
                                             {"GiB", 1073741824.0},
                                             {"TiB", 1099511627776.0},
                                             {"PiB", 1125899906842624.0},
                                             {"EiB", 1152921504606846976.0}}};

std::optional<double> scaled(std::optional<double> half_width, double scale) {
  if (half_width) return *half_width / scale;
  return std::nullopt;
}

std::string with_thousands(std::string text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  for (std::size_t at = point; at > first + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace

std::string format_bytes(double bytes) { return format_quantity(bytes, "B"); }

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) return "-" + format_seconds(-seconds);
  if (seconds < 60 && std::round(seconds) < 60) return format_quantity(seconds, "s");
  const auto whole = static_cast<std::int64_t>(std::min(std::round(seconds), 9e18));
  if (whole < 3600)
    return whole % 60 ? fmt::format("{} min {} s", whole / 60, whole % 60) : fmt::format("{} min", whole / 60);
  const std::int64_t minutes = (whole + 30) / 60;
  return minutes % 60 ? fmt::format("{} h {} min", minutes / 60, minutes % 60) : fmt::format("{} h", minutes / 60);
}

DisplayUnit display_unit(double value, std::string_view unit) {
  if (unit == "1" || unit.empty()) return {1, ""};
  if (unit == "s") {
    const Unit& scale =
        value == 0 ? second_scales.back() : scale_for(value, second_scales.data(), second_scales.size());
    return {scale.scale, std::string(scale.name)};
  }
  if (unit == "B") {
    const Unit& scale = scale_for(value, binary_scales.data(), binary_scales.size());
    return {scale.scale, std::string(scale.name)};
  }
  const bool prefixed = unit == "B/s" || unit == "FLOP/s" || unit == "OP/s" || unit == "Hz" || unit == "FLOP" ||
                        unit == "J" || unit == "W";
  // Counts get a prefix only if they are large: 1,024 img/s, but 1.24 M tokens/s.
  if (!prefixed && std::abs(value) < 99999.5) return {1, std::string(unit)};
  const Unit& scale = scale_for(value, decimal_scales.data(), decimal_scales.size());
  return {scale.scale, fmt::format("{}{}{}", scale.name, prefixed ? "" : " ", unit)};
}

std::string format_quantity(double value, std::string_view unit, std::optional<double> half_width) {
  if (!std::isfinite(value)) return "?";
  const auto [scale, name] = display_unit(value, unit);
  const std::string number = digits(value / scale, scaled(half_width, scale));
  return name.empty() ? number : fmt::format("{} {}", name == unit ? with_thousands(number) : number, name);
}

std::string format_number(double value, int places) { return with_thousands(fmt::format("{:.{}f}", value, places)); }

std::string format_percent(double fraction) {
  if (!std::isfinite(fraction)) return "?";
  const double percent = fraction * 100;
  return fmt::format("{} %", std::abs(percent) >= 10 ? fmt::format("{:.0f}", percent) : fmt::format("{:.1f}", percent));
}

}  // namespace assay
