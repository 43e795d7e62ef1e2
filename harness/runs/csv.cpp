#include "harness/runs/csv.h"

#include "harness/core/error.h"

#include <fmt/format.h>

#include <utility>

namespace assay {

namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row{line_, {}};
      bool more = true;
      while (more) {
        row.fields.push_back(field());
        more = at_ < text_.size() && text_[at_] == ',';
        if (more) ++at_;
      }
      end_line();
      if (row.fields.size() > 1 || !row.fields.front().empty()) rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }

  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_, ++line_;
  }

  std::string field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted();
    const std::size_t first = at_;
    while (!at_line_end() && text_[at_] != ',') ++at_;
    return std::string(text_.substr(first, at_ - first));
  }

  std::string quoted() {
    const int begun = line_;
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          ++at_;
        } else {
          ++at_;
          if (!at_line_end() && text_[at_] != ',')
            throw UsageError(fmt::format("{}: line {}: text after the closing quote of a field", name_, line_));
          return out;
        }
      }
      if (c == '\n') ++line_;
      out += c;
    }
    throw UsageError(fmt::format("{}: line {}: unterminated quote", name_, begun));
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name) { return Parser(text, name).rows(); }

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace assay
