// Comma-separated values as RFC 4180 has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

struct CsvRow {
  int line = 0;  // on which it begins, from 1
  std::vector<std::string> fields;
};

// Fields may stand in double quotes ("" is one of them) and then hold commas and line ends; lines end with LF or CRLF;
// empty lines and a byte order mark are passed over. Throws UsageError "NAME: line N: ..." on a quote that does not
// end, and on text after one that did.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

}  // namespace assay::report
