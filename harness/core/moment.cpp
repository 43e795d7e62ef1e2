#include "harness/core/moment.h"

#include "harness/core/utc.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace assay {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool skip(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == any_of.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool skip_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // Exactly so many digits, of a number within the limits.
  bool number(std::size_t digits, int low, int high, int& to) {
    if (rest_.size() < digits || !std::all_of(rest_.begin(), rest_.begin() + digits, digit)) return false;
    std::from_chars(rest_.data(), rest_.data() + digits, to);
    rest_.remove_prefix(digits);
    return low <= to && to <= high;
  }
  void skip_digits() {
    while (!rest_.empty() && digit(rest_.front())) rest_.remove_prefix(1);
  }
  static bool digit(char c) { return c >= '0' && c <= '9'; }

 private:
  std::string_view rest_;
};

std::optional<Moment> since_1970(std::string_view text) {
  constexpr std::size_t seconds = 10, milliseconds = 13;
  if ((text.size() != seconds && text.size() != milliseconds) || !std::all_of(text.begin(), text.end(), Reader::digit))
    return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return Moment{utc_text(text.size() == seconds ? value : value / 1000), true};
}

}  // namespace

std::optional<Moment> read_moment(std::string_view text) {
  if (const auto moment = since_1970(text)) return moment;
  Reader reader(text);
  std::tm parts{};
  int year = 0, month = 0, hours = 0, minutes = 0;
  if (!reader.number(4, 1970, 9999, year) || !reader.skip("-/") || !reader.number(2, 1, 12, month) ||
      !reader.skip("-/") || !reader.number(2, 1, 31, parts.tm_mday))
    return std::nullopt;
  parts.tm_year = year - 1900, parts.tm_mon = month - 1;
  if (!reader.at_end() && reader.skip("T ")) {
    if (!reader.number(2, 0, 23, parts.tm_hour) || !reader.skip(":") || !reader.number(2, 0, 59, parts.tm_min))
      return std::nullopt;
    if (reader.skip(":") && !reader.number(2, 0, 60, parts.tm_sec)) return std::nullopt;
    if (reader.skip(".,")) reader.skip_digits();
  }
  const int day = parts.tm_mday;
  std::time_t moment = timegm(&parts);  // makes 1 March of 30 February
  if (parts.tm_mday != day && parts.tm_sec != 60) return std::nullopt;
  reader.skip(" ");
  bool zone = reader.skip("Zz") || reader.skip_word("UTC") || reader.skip_word("GMT");
  const bool east = !zone && reader.skip("+");
  if (east || (!zone && reader.skip("-"))) {
    if (!reader.number(2, 0, 14, hours)) return std::nullopt;
    reader.skip(":");
    if (!reader.at_end() && !reader.number(2, 0, 59, minutes)) return std::nullopt;
    moment -= (east ? 60 : -60) * (60 * hours + minutes);
    zone = true;
  }
  if (!reader.at_end()) return std::nullopt;
  return Moment{utc_text(moment), zone};
}

}  // namespace assay
