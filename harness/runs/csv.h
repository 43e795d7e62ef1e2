// Comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct CsvRow {
  int line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// Fields may be in double quotes ("" is a quote) and may then contain commas and line ends; lines end with LF or CRLF;
// empty lines and a byte order mark are skipped. Throws UsageError "NAME: line N: ..." on an unterminated quote, and on
// text after a closing one.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

// A field of a CSV file, in quotes if it needs them.
std::string csv_field(const std::string& text);

}  // namespace assay
