#include "harness/plan/values.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/whole_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace assay {

namespace {

constexpr double max_count = 1e18;

bool is_integral(ParamType type) {
  return type == ParamType::integer || type == ParamType::bytes || type == ParamType::count;
}

bool has_ranges(ParamType type) { return is_integral(type) || type == ParamType::seconds; }

// Sizes and counts begin at 1 and times at 0 unless the family sets another minimum.
std::optional<double> minimum_of(const ParamSpec& spec) {
  if (spec.minimum) return spec.minimum;
  if (is_integral(spec.type)) return 1.0;
  if (spec.type == ParamType::seconds) return 0.0;
  return std::nullopt;
}

std::string limit_text(const ParamSpec& spec, double limit) {
  return is_integral(spec.type) ? fmt::format("{:.0f}", limit) : fmt::format("{}", limit);
}

double as_double(const ParamValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

std::optional<ParamValue> within(const ParamSpec& spec, const Cursor& cursor, ParamValue value) {
  const double number = as_double(value);
  const auto minimum = minimum_of(spec);
  if (minimum && number < *minimum) {
    cursor.error(fmt::format("{} is too small for \"{}\": at least {}", to_string(value), spec.name,
                             limit_text(spec, *minimum)));
    return std::nullopt;
  }
  if (spec.maximum && number > *spec.maximum) {
    cursor.error(fmt::format("{} is too large for \"{}\": at most {}", to_string(value), spec.name,
                             limit_text(spec, *spec.maximum)));
    return std::nullopt;
  }
  return value;
}

// Text with a unit, read by `parse`; its error becomes a problem.
template <typename T>
std::optional<T> parsed(const Cursor& cursor, T (*parse)(std::string_view)) {
  try {
    return parse(cursor.json().get_ref<const std::string&>());
  } catch (const UsageError& problem) {
    cursor.error(problem.what());
    return std::nullopt;
  }
}

std::optional<ParamValue> wrong_type(const ParamSpec& spec, const Cursor& cursor, std::string_view wanted) {
  cursor.error(fmt::format("\"{}\" must be {}, is {}", spec.name, wanted, kind_of(cursor.json())));
  return std::nullopt;
}

std::optional<ParamValue> read_integer(const ParamSpec& spec, const Cursor& cursor, std::string_view wanted) {
  const Json& json = cursor.json();
  if (!json.is_number_integer()) return wrong_type(spec, cursor, wanted);
  const auto value = cursor.integer();
  return value ? within(spec, cursor, *value) : std::nullopt;
}

std::optional<ParamValue> read_seconds(const ParamSpec& spec, const Cursor& cursor) {
  const Json& json = cursor.json();
  std::optional<double> value;
  if (json.is_string())
    value = parsed(cursor, parse_seconds);
  else if (json.is_number())
    value = json.get<double>();
  else
    return wrong_type(spec, cursor, "a time (a number of seconds, or text such as \"500ms\")");
  return value ? within(spec, cursor, *value) : std::nullopt;
}

std::optional<ParamValue> read_word(const ParamSpec& spec, const Cursor& cursor) {
  const auto& word = cursor.json().get_ref<const std::string&>();
  if (std::ranges::find(spec.allowed, word) != spec.allowed.end()) return word;
  cursor.error(fmt::format("{} is no value of \"{}\"{}", in_quotes(word), spec.name, suggestion(word, spec.allowed)));
  return std::nullopt;
}

std::optional<ParamValue> read_count(const ParamSpec& spec, const Cursor& cursor) {
  const std::string wanted = spec.allowed.empty()
                                 ? "a positive integer"
                                 : fmt::format("a positive integer or one of: {}", fmt::join(spec.allowed, ", "));
  return cursor.json().is_string() ? read_word(spec, cursor) : read_integer(spec, cursor, wanted);
}

std::optional<ParamValue> read_text(const ParamSpec& spec, const Cursor& cursor) {
  if (!cursor.json().is_string()) return wrong_type(spec, cursor, "text");
  const auto& text = cursor.json().get_ref<const std::string&>();
  const bool control =
      std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!control && text.size() <= 4096 && is_utf8(text)) return text;
  cursor.error(fmt::format("\"{}\" must be UTF-8 without control characters, at most 4096 bytes", spec.name));
  return std::nullopt;
}

// A list of the words of a command, or an object of variables, as a shell reads them.
std::optional<ValueList> read_words(const ParamSpec& spec, const Cursor& cursor) {
  std::string all;
  bool bad = false;
  const auto add = [&](const std::string& before, const Cursor& word) {
    const auto text = read_text(spec, word);
    bad = bad || !text;
    if (text) all += (all.empty() ? "" : " ") + before + short_shell_word(std::get<std::string>(*text));
  };
  if (spec.shell == ParamSpec::Shell::command && cursor.json().is_array()) {
    for (const Cursor& word : cursor.elements()) add("", word);
  } else if (spec.shell == ParamSpec::Shell::variables && cursor.json().is_object()) {
    for (const auto& [name, word] : cursor.members()) add(name + "=", word);
  } else {
    wrong_type(spec, cursor,
               spec.shell == ParamSpec::Shell::command ? "a command: text or a list of its words"
                                                       : "an object of variables, or text: NAME=VALUE ...");
    return std::nullopt;
  }
  if (all.empty() && !bad) cursor.error(fmt::format("\"{}\" is empty", spec.name));
  if (all.empty() || bad) return std::nullopt;
  return ValueList{{all}, {}};
}

// The factor or step of a range: a positive number, an integer if the values are.
std::optional<double> read_stride(const ParamSpec& spec, const Cursor& cursor, double above, bool unit) {
  const Json& json = cursor.json();
  std::optional<double> value;
  if (unit && json.is_string() && spec.type == ParamType::bytes) {
    const auto bytes = parsed(cursor, parse_bytes);
    if (bytes) value = static_cast<double>(*bytes);
  } else if (unit && json.is_string() && spec.type == ParamType::seconds) {
    value = parsed(cursor, parse_seconds);
  } else if (json.is_number()) {
    value = json.get<double>();
  } else {
    cursor.error(fmt::format("must be a number, is {}", kind_of(json)));
  }
  if (!value) return std::nullopt;
  if (!(*value > above)) {
    cursor.error(fmt::format("{} is too small: above {}", json.dump(), above));
    return std::nullopt;
  }
  if (is_integral(spec.type) && *value != std::floor(*value)) {
    cursor.error(fmt::format("must be an integer, since \"{}\" is one", spec.name));
    return std::nullopt;
  }
  return value;
}

std::optional<ValueRange> read_range(const ParamSpec& spec, const Cursor& cursor) {
  if (!has_ranges(spec.type)) {
    wrong_type(spec, cursor, "a value or a list of values");
    return std::nullopt;
  }
  static const std::vector<std::string> names = {"from", "to", "factor", "step"};
  cursor.only(names);
  const auto from = cursor.need("from");
  const auto to = cursor.need("to");
  const auto factor = cursor.find("factor");
  const auto step = cursor.find("step");
  if (factor.has_value() == step.has_value()) cursor.error("a range has either \"factor\" or \"step\"");
  const auto first = from ? read_value(spec, *from) : std::nullopt;
  const auto last = to ? read_value(spec, *to) : std::nullopt;
  ValueRange range;
  if (factor) range.factor = read_stride(spec, *factor, 1, false);
  if (step) range.step = read_stride(spec, *step, 0, true);
  if (!first || !last || range.factor.has_value() == range.step.has_value()) return std::nullopt;
  if (first->index() == 3 || last->index() == 3) {  // a count's word
    cursor.error("a range goes from a number to a number");
    return std::nullopt;
  }
  if (as_double(*first) > as_double(*last)) {
    cursor.error(fmt::format("from {} is above to {}", to_string(*first), to_string(*last)));
    return std::nullopt;
  }
  if (range.factor && as_double(*first) <= 0) {
    cursor.error("a range by factor begins above 0");
    return std::nullopt;
  }
  range.from = *first;
  range.to = *last;
  return range;
}

}  // namespace

double ValueRange::count() const {
  const double first = as_double(from), last = as_double(to);
  // The slack is only for reals: 0.1 to 0.3 by 0.1 is three values.
  const double slack = from.index() == 1 ? 0.0 : 1e-9;
  if (step) return std::min(max_count, std::floor((last - first) / *step + slack) + 1);
  if (slack > 0) return std::min(max_count, std::floor(std::log(last / first) / std::log(*factor) + slack) + 1);
  double n = 0;
  for (double at = first; at <= last; at *= *factor) ++n;
  return n;
}

void ValueRange::append_to(std::vector<ParamValue>& values) const {
  if (const auto* first = std::get_if<std::int64_t>(&from)) {
    const std::int64_t last = std::get<std::int64_t>(to);
    const auto stride = static_cast<std::int64_t>(std::min(step ? *step : *factor, 9e18));
    for (std::int64_t at = *first; at <= last;) {
      values.emplace_back(at);
      std::int64_t next = 0;
      if (step ? __builtin_add_overflow(at, stride, &next) : __builtin_mul_overflow(at, stride, &next)) break;
      at = next;
    }
    return;
  }
  const double first = std::get<double>(from);
  const auto n = static_cast<std::int64_t>(count());
  for (std::int64_t i = 0; i < n; ++i)
    values.emplace_back(step ? first + *step * static_cast<double>(i)
                             : first * std::pow(*factor, static_cast<double>(i)));
}

double ValueList::count() const {
  double n = static_cast<double>(scalars.size());
  for (const ValueRange& range : ranges) n += range.count();
  return std::min(n, max_count);
}

std::vector<ParamValue> ValueList::values() const {
  std::vector<ParamValue> all = scalars;
  for (const ValueRange& range : ranges) range.append_to(all);
  return all;
}

std::optional<ParamValue> read_value(const ParamSpec& spec, const Cursor& cursor) {
  switch (spec.type) {
    case ParamType::integer: return read_integer(spec, cursor, "an integer");
    case ParamType::bytes: {
      if (!cursor.json().is_string())
        return read_integer(spec, cursor, "a size (an integer, or text such as \"64MiB\")");
      const auto bytes = parsed(cursor, parse_bytes);
      return bytes ? within(spec, cursor, *bytes) : std::nullopt;
    }
    case ParamType::seconds: return read_seconds(spec, cursor);
    case ParamType::flag:
      if (!cursor.json().is_boolean()) return wrong_type(spec, cursor, "true or false");
      return cursor.json().get<bool>();
    case ParamType::choice:
      if (!cursor.json().is_string())
        return wrong_type(spec, cursor, fmt::format("one of: {}", fmt::join(spec.allowed, ", ")));
      return read_word(spec, cursor);
    case ParamType::count: return read_count(spec, cursor);
    case ParamType::text: return read_text(spec, cursor);
  }
  return std::nullopt;
}

std::optional<ValueList> read_values(const ParamSpec& spec, const Cursor& cursor) {
  if (!spec.sweep.empty() && cursor.json() == sweep_word)
    return ValueList{{spec.sweep.begin(), spec.sweep.end()}, {}, true};
  if (spec.shell != ParamSpec::Shell::no && !cursor.json().is_string()) return read_words(spec, cursor);
  ValueList list;
  const auto add = [&](const Cursor& one) {
    if (one.json().is_object()) {
      if (auto range = read_range(spec, one)) list.ranges.push_back(std::move(*range));
    } else if (auto value = read_value(spec, one)) {
      list.scalars.push_back(std::move(*value));
    }
  };
  if (cursor.json().is_array()) {
    if (cursor.json().empty()) cursor.error(fmt::format("\"{}\" is an empty list: no case would run", spec.name));
    for (const Cursor& element : cursor.elements()) add(element);
  } else {
    add(cursor);
  }
  if (list.scalars.empty() && list.ranges.empty()) return std::nullopt;
  return list;
}

std::optional<ValueList> read_values(const ParamSpec& spec, std::string_view text, Problems& problems) {
  if (text == sweep_word && !spec.sweep.empty()) return read_values(spec, Cursor(Json(sweep_word), problems));
  if (spec.shell != ParamSpec::Shell::no) return read_values(spec, Cursor(Json(std::string(text)), problems));
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',')
      words.back() += text[++i];
    else if (text[i] == ',')
      words.emplace_back();
    else
      words.back() += text[i];
  }
  ValueList list;
  for (const std::string& word : words) {
    if (word.empty() && spec.type != ParamType::text) {
      problems.add("", fmt::format("a value of \"{}\" is empty", spec.name));
      continue;
    }
    // The value as a file would contain it.
    Json json = word;
    if (const auto whole = whole_number<std::int64_t>(word); whole && is_integral(spec.type)) json = *whole;
    if (spec.type == ParamType::flag && (word == "true" || word == "false")) json = word == "true";
    if (spec.type == ParamType::integer && json.is_string()) {
      problems.add("", fmt::format("\"{}\" must be an integer, is {}", spec.name, in_quotes(word)));
    } else if (auto value = read_value(spec, Cursor(json, problems))) {
      list.scalars.push_back(std::move(*value));
    }
  }
  if (list.scalars.empty()) return std::nullopt;
  return list;
}

}  // namespace assay
