// Makes untrusted strings harmless for where they are printed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::report {

// Secrets are masked. Valid UTF-8 without control characters (each becomes U+FFFD; tabs and line ends become spaces).
std::string printable(std::string_view text);
// Like `printable`, with Markdown and HTML markup escaped; mentions, references and bare links are inert.
std::string markdown_escape(std::string_view text);
// Like `printable`, with HTML markup escaped, for text and quoted attributes.
std::string html_escape(std::string_view text);
// Terminal columns of printable text: one per code point, two for East Asian wide ones, none for combining marks.
int display_width(std::string_view text);
// Bytes of the longest prefix of printable text within `columns`; at least one character.
std::size_t fitting(std::string_view text, int columns);
// The first `columns` of printable text, with an ellipsis if something was cut.
std::string shorten(std::string_view text, int columns);

}  // namespace assay::report
