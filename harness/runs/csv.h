// Comma-separated values (RFC 4180).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct CsvRow {
  int line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// Reads a file row by row. Fields may be in double quotes ("" is a quote) and may then contain separators and line
// ends; lines end with LF or CRLF; empty lines and a byte order mark are skipped. It throws UsageError "NAME: line N:
// ..." on an unterminated quote, on text after a closing one, and for a row beyond 64 MiB.
class CsvReader {
 public:
  // `more` appends the next part of the text, or returns false at its end.
  CsvReader(std::string name, std::function<bool(std::string& text)> more, char separator = ',');
  // False after the last row.
  bool next(CsvRow& row);

 private:
  bool at_line_end() const;
  void end_line();
  void have_row();
  std::string field();
  std::string quoted();

  std::string name_, text_;
  std::function<bool(std::string& text)> more_;
  char separator_;
  std::size_t at_ = 0;  // in text_
  bool begun_ = false;
  int line_ = 1;
};

// All rows of a text.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name);

// A text as a cell: each line by one_line(), in quotes if it needs them. Spreadsheets would run one that begins as a
// formula does ("=1+1", "@SUM", "-x"), so that it gets an apostrophe; numbers are written without this.
std::string csv_cell(std::string_view text);
// The text of which csv_cell() made the contents of a cell, without the apostrophe.
std::string_view csv_value(std::string_view cell);

}  // namespace assay
