#include "harness/core/text.h"

#include <algorithm>
#include <cctype>

namespace assay {

namespace {

// Bytes of the UTF-8 character at the start; 0 if it is not one.
std::size_t character_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : (first & 0xf0u) == 0xe0       ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; };
  return std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), continues) ? length : 0;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (out.size() + std::max<std::size_t>(length, 1) > max_bytes) return out + "...";
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < 0x20 || first == 0x7f)
      out += fmt::format("\\x{:02x}", first);
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string last_lines(std::string_view text, int count) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t start = text.size();
  while (count > 0 && start > 0)
    if (text[--start] == '\n' && --count == 0) return std::string(text.substr(start + 1));
  return std::string(text.substr(start));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\0'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string plural(std::int64_t n, const char* word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

std::string and_more(std::size_t all, std::size_t named) {
  return all > named ? fmt::format(" and {} more", all - named) : std::string();
}

std::string first_few(const std::vector<std::string>& names, std::size_t max_named, std::string_view separator) {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), max_named));
  return fmt::format("{}", fmt::join(names.begin(), end, separator)) + and_more(names.size(), max_named);
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string in_quotes(std::string_view text, std::size_t max_bytes) { return '"' + one_line(text, max_bytes) + '"'; }

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

}  // namespace assay
