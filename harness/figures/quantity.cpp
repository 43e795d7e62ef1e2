#include "harness/figures/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace assay {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Words between blanks, and what one of each is.
struct Scale {
  std::string_view words;
  double value;
};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != words.npos && !word.empty(); at = words.find(word, at + 1))
    if (words[at - 1] == ' ' && words[at + word.size()] == ' ') return true;
  return false;
}

template <std::size_t n>
const double* scale_of(const std::array<Scale, n>& known, std::string_view word) {
  const auto found = std::ranges::find_if(known, [&](const Scale& one) { return has_word(one.words, word); });
  return found == known.end() ? nullptr : &found->value;
}

constexpr std::array<Scale, 12> large{{{" k K ", 1e3},
                                       {" M ", 1e6},
                                       {" G ", 1e9},
                                       {" T ", 1e12},
                                       {" P ", 1e15},
                                       {" E ", 1e18},
                                       {" Ki ki ", 0x1p10},
                                       {" Mi ", 0x1p20},
                                       {" Gi ", 0x1p30},
                                       {" Ti ", 0x1p40},
                                       {" Pi ", 0x1p50},
                                       {" Ei ", 0x1p60}}};
constexpr std::array<Scale, 3> small{{{" m ", 1e-3}, {" u ", 1e-6}, {" n ", 1e-9}}};
constexpr double minute = 60;
constexpr std::array<Scale, 8> durations{{{" s sec secs second seconds ", 1},
                                          {" ms msec milliseconds ", 1e-3},
                                          {" us usec microseconds ", 1e-6},
                                          {" ns nsec nanoseconds ", 1e-9},
                                          {" ps ", 1e-12},
                                          {" min mins minute minutes ", minute},
                                          {" h hr hour hours ", 3600},
                                          {" d day days ", 86400}}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> bases{{{" B byte bytes Byte Bytes ", "B"},
                                                                               {" b bit bits ", "bit"},
                                                                               {" bps ", "bit/s"},
                                                                               {" Bps ", "B/s"},
                                                                               {" FLOPS flops ", "FLOP/s"},
                                                                               {" FLOP FLOPs ", "FLOP"},
                                                                               {" OPS ", "OP/s"},
                                                                               {" OP ", "OP"},
                                                                               {" Hz ", "Hz"},
                                                                               {" W ", "W"},
                                                                               {" J ", "J"}}};

std::optional<BaseUnit> simple_unit(std::string word) {
  for (const std::string_view sign : {"\xc2\xb5", "\xce\xbc"})  // the micro sign and the Greek letter
    if (word.starts_with(sign)) word.replace(0, sign.size(), "u");
  if (word == "%") return BaseUnit{0.01, "1"};
  if (word == "x") return BaseUnit{1, "1"};
  if (const double* scale = scale_of(durations, word)) return BaseUnit{*scale, "s"};
  for (std::size_t prefix = 0; prefix <= 2 && prefix < word.size(); ++prefix)
    for (const auto& [words, name] : bases) {
      if (!has_word(words, std::string_view(word).substr(prefix))) continue;
      const std::string_view sign = std::string_view(word).substr(0, prefix);
      if (sign.empty()) return BaseUnit{1, std::string(name)};
      const double* scale = scale_of(large, sign);
      if (!scale && (name == "W" || name == "J")) scale = scale_of(small, sign);
      if (scale) return BaseUnit{*scale, std::string(name)};
    }
  return std::nullopt;
}

bool is_word(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || c == '_' || c == '-'; });
}

// Digits, thousands, decimals and the exponent at the beginning of a text, and how long they are there.
struct Digits {
  double value = 0;
  std::size_t bytes = 0;
};

std::optional<Digits> digits_at(std::string_view text) {
  std::string plain;
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t first = at;
    for (; at < text.size() && is_digit(text[at]); ++at) plain += text[at];
    return at - first;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
    if (text[at] == '-') plain += '-';
    ++at;
  }
  std::size_t any = digits();
  const auto group_follows = [&](char separator) {
    return text.size() > at + 3 && text[at] == separator && is_digit(text[at + 1]) && is_digit(text[at + 2]) &&
           is_digit(text[at + 3]) && (text.size() == at + 4 || !is_digit(text[at + 4]));
  };
  if (any > 0 && any <= 3 && at < text.size())
    if (const char separator = text[at]; separator == ',' || separator == '_' || separator == '\'')
      while (group_follows(separator)) ++at, digits();
  if (at < text.size() && text[at] == '.') {
    plain += text[at++];
    any += digits();
    // A point that ends a sentence.
    if (plain.back() == '.') plain.pop_back(), --at;
  }
  if (any == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t first = at + 1;
    if (first < text.size() && (text[first] == '-' || text[first] == '+')) ++first;
    if (first < text.size() && is_digit(text[first])) {
      plain += 'e';
      if (text[first - 1] == '-') plain += '-';
      at = first;
      digits();
    }
  }
  Digits read{0, at};
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), read.value);
  if (error != std::errc() || end != plain.data() + plain.size() || !std::isfinite(read.value)) return std::nullopt;
  return read;
}

// Whether a number or a unit may end before this text.
bool ends_before(std::string_view rest) {
  if (rest.empty() || is_blank(rest.front())) return true;
  if (std::string_view(";)]}\"'`|").find(rest.front()) != std::string_view::npos) return true;
  if (rest.front() == ':') return rest.size() == 1 || is_blank(rest[1]);
  if (rest.front() == ',' || rest.front() == '.') return rest.size() == 1 || !is_digit(rest[1]);
  return rest.starts_with("\xc2\xb1") || rest.starts_with("+/-");
}

std::size_t blanks_at(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_blank) - text.begin());
}

// The word at the beginning of a text, up to blanks and marks that end it.
std::string_view unit_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && !is_blank(text[end]) && std::string_view(",;()[]{}|\"'`").find(text[end]) == text.npos)
    ++end;
  std::string_view word = text.substr(0, end);
  while (!word.empty() && (word.back() == '.' || word.back() == ':')) word.remove_suffix(1);
  return word;
}

// The rest of "2 min 21 s" and "1m30s" behind its first part, in seconds.
double further_durations(std::string_view text, double smaller_than, std::size_t& bytes) {
  double seconds = 0;
  while (true) {
    const std::string_view rest = text.substr(bytes);
    const std::size_t gap = blanks_at(rest);
    const auto number = digits_at(rest.substr(gap));
    if (!number || !is_digit(rest[gap])) return seconds;
    const std::size_t unit_at = gap + number->bytes + blanks_at(rest.substr(gap + number->bytes));
    std::size_t letters = 0;
    while (unit_at + letters < rest.size() && is_letter(rest[unit_at + letters])) ++letters;
    const double* scale = scale_of(durations, rest.substr(unit_at, letters));
    const std::string_view behind = rest.substr(unit_at + letters);
    if (!scale || *scale >= smaller_than || (!ends_before(behind) && !is_digit(behind.front()))) return seconds;
    seconds += number->value * *scale;
    smaller_than = *scale;
    bytes += unit_at + letters;
  }
}

}  // namespace

std::optional<BaseUnit> base_unit(std::string_view word) {
  const std::size_t slash = word.find('/');
  if (slash == word.npos) return simple_unit(std::string(word));
  const std::string_view over = word.substr(0, slash), per = word.substr(slash + 1);
  BaseUnit above = simple_unit(std::string(over)).value_or(BaseUnit{1, std::string(over)});
  if (!is_word(per) || (!is_word(over) && above.name == over)) return std::nullopt;
  if (const double* seconds = scale_of(durations, per)) return BaseUnit{above.scale / *seconds, above.name + "/s"};
  return BaseUnit{above.scale, above.name + "/" + std::string(per)};
}

std::optional<double> in_unit(double value, const std::string& from, const std::string& to) {
  if (from == to) return value;
  const auto a = base_unit(from), b = base_unit(to);
  if (!a || !b || a->name != b->name) return std::nullopt;
  return value * (a->scale / b->scale);
}

std::optional<Quantity> quantity_at(std::string_view text) {
  const auto number = digits_at(text);
  if (!number) return std::nullopt;
  Quantity found{number->value, {}, number->bytes};
  // "5.1 ± 0.2 ms": the unit is behind the uncertainty.
  for (const std::string_view sign : {"\xc2\xb1", "+/-"}) {
    std::size_t at = found.bytes + blanks_at(text.substr(found.bytes));
    if (!text.substr(at).starts_with(sign)) continue;
    at += sign.size();
    at += blanks_at(text.substr(at));
    if (const auto half = digits_at(text.substr(at))) found.bytes = at + half->bytes;
  }
  const std::string_view rest = text.substr(found.bytes);
  std::size_t first = blanks_at(rest);
  if (first < rest.size() && (rest[first] == '(' || rest[first] == '[')) ++first;
  const bool glued = first == 0;
  std::string_view word = unit_word(rest.substr(first));
  // "1h5min" ends a unit at a digit; "0m1.2s" is what the shell prints, and the only place where m is a minute.
  if (const auto digit = std::ranges::find_if(word, is_digit); glued && digit != word.end()) {
    word = word.substr(0, static_cast<std::size_t>(digit - word.begin()));
    const double* scale = word == "m" ? &minute : scale_of(durations, word);
    std::size_t bytes = found.bytes + word.size();
    found.value = scale ? found.value * *scale + further_durations(text, *scale, bytes) : 0;
    return scale && ends_before(text.substr(bytes)) ? std::optional(Quantity{found.value, "s", bytes}) : std::nullopt;
  }
  std::size_t end = found.bytes + first + word.size();
  if (const double* prefix = word.size() == 1 ? scale_of(large, word) : nullptr) {
    // "1.2M", "1.24 M tokens/s"
    const std::size_t next = end + blanks_at(text.substr(end));
    const std::string_view rate = unit_word(text.substr(next));
    const auto unit = rate.find('/') == rate.npos ? std::nullopt : base_unit(rate);
    if (!glued && !unit) return std::nullopt;
    found.value *= *prefix, found.bytes = end;
    if (unit) found.value *= unit->scale, found.unit = unit->name, found.bytes = next + rate.size();
    return std::isfinite(found.value) ? std::optional(found) : std::nullopt;
  }
  // A word before "=" or ":" names the next figure.
  const std::string_view behind = text.substr(end + blanks_at(text.substr(end)));
  const bool names = behind.starts_with('=') || (behind.starts_with(':') && word.find('/') == word.npos);
  auto unit = names && !glued ? std::nullopt : base_unit(word);
  if (glued && !unit && !ends_before(rest)) return std::nullopt;
  if (const double* scale = unit && unit->name == "s" ? scale_of(durations, word) : nullptr) {
    const std::size_t before = end;
    const double more = further_durations(text, *scale, end);
    // "avg 5 min 3 max 9" counts no minutes.
    if (word == "min" && end == before && !behind.empty() && is_digit(behind.front()))
      unit.reset();
    else
      found.value += more / unit->scale;
  }
  if (unit) found.value *= unit->scale, found.unit = unit->name, found.bytes = end;
  return std::isfinite(found.value) ? std::optional(found) : std::nullopt;
}

std::optional<double> number_from(std::string_view word) {
  const auto read = digits_at(word);
  if (read && word.ends_with('.')) word.remove_suffix(1);
  return read && read->bytes == word.size() ? std::optional(read->value) : std::nullopt;
}

}  // namespace assay
