#include "harness/core/text.h"

#include "harness/core/plain_text.h"
#include "harness/core/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace assay {

std::optional<CodePoint> first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return CodePoint{first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || text.size() < length) return std::nullopt;
  char32_t code = first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < lowest[length] || code > 0x10FFFF || surrogate) return std::nullopt;
  return CodePoint{code, length};
}

bool is_harmful(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || c == 0x180E ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

std::string one_line(std::string_view given, std::size_t max_bytes) {
  constexpr std::size_t beyond = 4096;  // a secret that would be cut could no longer be recognised
  const std::string masked = mask_secrets(given.substr(0, std::max(max_bytes, max_bytes + beyond)));
  std::string_view text = masked;
  std::string out;
  while (!text.empty()) {
    const auto point = first_code_point(text);
    const std::string_view bytes = text.substr(0, point ? point->length : 1);
    if (out.size() + bytes.size() > max_bytes) return out + "...";
    if (point && !is_harmful(point->code))
      out += bytes;
    else
      for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string plain_lines(std::string_view text) {
  constexpr std::size_t max_line = 4000;
  std::string out;
  for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    out += one_line(text.substr(0, end), max_line) + "\n";
  return out + one_line(text, max_line);
}

std::string reason_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: {}", file->path1().string(), file->code().message());
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) return system->code().message();
  if (dynamic_cast<const std::logic_error*>(&error)) return "an error in assay itself: please report what was run";
  const std::string_view what = error.what();
  const std::size_t end = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
  return std::string(end == what.npos ? what : what.substr(end + 2));
}

ExitCode code_of_unwritten(std::string_view why) {
  for (const int error : {ENOSPC, EDQUOT})
    if (why.ends_with(std::strerror(error))) return ExitCode::broken;
  return ExitCode::usage;
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

std::vector<std::string> first_ten(const std::vector<std::string>& problems, const std::string& name,
                                   std::string_view between) {
  constexpr std::size_t shown = 10;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(problems.size(), shown); ++i)
    lines.push_back(name.empty() ? problems[i] : fmt::format("{}{}{}", name, between, problems[i]));
  if (problems.size() > shown)
    lines.push_back(fmt::format("{}{}and {} more", name, name.empty() ? "" : ": ", problems.size() - shown));
  return lines;
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
    const auto point = first_code_point(text);
    if (!point) return false;
    text.remove_prefix(point->length);
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

std::string short_shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:=@%+,-").find(c) != std::string_view::npos;
  });
  return plain ? std::string(text) : shell_word(text);
}

std::string shell_in_folder(const std::filesystem::path& folder, std::string_view command) {
  return fmt::format("cd {} && {{ {}\n}}", shell_word(folder.string()), command);
}

}  // namespace assay
