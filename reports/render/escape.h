// Makes strings of unknown origin harmless for the place they are printed at.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::report {

// Valid UTF-8 without control characters (each becomes U+FFFD; tabs and line ends become spaces).
std::string printable(std::string_view text);
// `printable`, with what Markdown or HTML would read as markup escaped.
std::string markdown_escape(std::string_view text);
// `printable`, with what HTML would read as markup escaped: for text and for quoted attributes.
std::string html_escape(std::string_view text);
// Terminal columns that printable text takes: code points, East Asian wide ones as two, combining marks as none.
int display_width(std::string_view text);
// Bytes of the longest start of printable text that takes at most `columns`; one character where none fits.
std::size_t fitting(std::string_view text, int columns);
// The first `columns` of printable text, ended by an ellipsis when something was cut.
std::string shorten(std::string_view text, int columns);

}  // namespace assay::report
