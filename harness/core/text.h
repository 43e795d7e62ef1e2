// Text of others (files, flags, libraries) as it may stand in a message.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// On one line: control characters and bytes that are not UTF-8 written as \xNN; cut at a character's border after
// `most` bytes, with "..." added.
std::string one_line(std::string_view text, std::size_t most = 200);

// The last `count` lines of it, without the newlines that end it.
std::string last_lines(std::string_view text, int count);

// Whether all of it is UTF-8, as JSON needs.
bool is_utf8(std::string_view text);

// one_line() in double quotes.
std::string in_quotes(std::string_view text, std::size_t most = 80);

}  // namespace assay
