// Makes foreign text (from files, flags, libraries) fit for a message.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// On one line, secrets masked: control characters and bytes that are not UTF-8 written as \xNN; truncated at a
// character boundary after `max_bytes`, with "..." added.
std::string one_line(std::string_view text, std::size_t max_bytes = 200);

// The last `count` lines, without trailing newlines.
std::string last_lines(std::string_view text, int count);

std::string first_line(const std::string& text);

// Without white space and NUL at both ends.
std::string_view trim(std::string_view text);
// A to Z as a to z.
std::string lower_case(std::string_view text);

// "a, b, c".
template <typename Parts>
std::string joined(const Parts& parts, std::string_view separator = ", ") {
  return fmt::format("{}", fmt::join(parts, separator));
}

// "1 case", "2 cases".
std::string plural(std::int64_t n, const char* word);
// " and 3 more", or nothing if all are named.
std::string and_more(std::size_t all, std::size_t named);
// "a, b and 3 more": the first `max_named`, with `separator` between them.
std::string first_few(const std::vector<std::string>& names, std::size_t max_named = 3,
                      std::string_view separator = ", ");

// What stands between commas: "a,,b" is "a", "", "b".
std::vector<std::string> split_commas(std::string_view text);

// Whether the text is valid UTF-8, as JSON requires.
bool is_utf8(std::string_view text);

// one_line() in double quotes.
std::string in_quotes(std::string_view text, std::size_t max_bytes = 80);

// Quotes the text with single quotes, so that a shell reads it as one word.
std::string shell_word(std::string_view text);
// shell_word(), but without quotes where a shell reads the text as one word by itself.
std::string short_shell_word(std::string_view text);
// A line that runs a command, which may have several lines, in a folder.
std::string shell_in_folder(const std::filesystem::path& folder, std::string_view command);

}  // namespace assay
