#include "harness/core/moment.h"

#include "harness/core/utc.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace assay {

namespace {

// Cuts a number of exactly so many digits off the text; -1 if there is none, or a larger one than `high`.
int cut_number(std::string_view& text, std::size_t digits, int high) {
  int value = -1;
  if (text.size() < digits || text.find_first_not_of("0123456789") < digits) return -1;
  std::from_chars(text.data(), text.data() + digits, value);
  text.remove_prefix(digits);
  return value <= high ? value : -1;
}

bool cut(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == any_of.npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<Moment> read_moment(std::string_view text) {
  constexpr std::size_t seconds = 10, milliseconds = 13;
  if ((text.size() == seconds || text.size() == milliseconds) && text.find_first_not_of("0123456789") == text.npos) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return Moment{utc_text(text.size() == seconds ? value : value / 1000), true};
  }
  std::tm parts{};
  parts.tm_year = cut_number(text, 4, 9999) - 1900;
  if (parts.tm_year < 70 || !cut(text, "-/") || (parts.tm_mon = cut_number(text, 2, 12) - 1) < 0 || !cut(text, "-/") ||
      (parts.tm_mday = cut_number(text, 2, 31)) < 1)
    return std::nullopt;
  if (text.size() > 1 && cut(text, "T ")) {
    if ((parts.tm_hour = cut_number(text, 2, 23)) < 0 || !cut(text, ":") ||
        (parts.tm_min = cut_number(text, 2, 59)) < 0 ||
        (cut(text, ":") && (parts.tm_sec = cut_number(text, 2, 60)) < 0))
      return std::nullopt;
    if (cut(text, ".,")) text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  }
  const int day = parts.tm_mday, second = parts.tm_sec;
  std::time_t moment = timegm(&parts);  // makes 2 March of 30 February
  if (parts.tm_mday != day && second != 60) return std::nullopt;
  cut(text, " ");
  if (text == "Z" || text == "z" || text == "UTC" || text == "GMT") return Moment{utc_text(moment), true};
  const bool west = text.starts_with('-');
  if (!cut(text, "+-")) return text.empty() ? std::optional(Moment{utc_text(moment), false}) : std::nullopt;
  const int hours = cut_number(text, 2, 14);
  cut(text, ":");
  const int minutes = text.empty() ? 0 : cut_number(text, 2, 59);
  if (hours < 0 || minutes < 0 || !text.empty()) return std::nullopt;
  return Moment{utc_text(moment + (west ? 60 : -60) * (60 * hours + minutes)), true};
}

}  // namespace assay
