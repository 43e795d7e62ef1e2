#include "harness/runs/csv.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay {

namespace {

// Some spreadsheets skip blanks, and take full-width signs as well.
bool begins_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  constexpr std::string_view signs[] = {"=", "+", "-", "@", "＝", "＋", "－", "＠"};
  return std::ranges::any_of(signs, [&](std::string_view sign) { return text.starts_with(sign); });
}

}  // namespace

CsvReader::CsvReader(std::string name, std::function<bool(std::string& text)> more, char separator)
    : name_(std::move(name)), more_(std::move(more)), separator_(separator) {}

bool CsvReader::at_line_end() const {
  return at_ == text_.size() || text_[at_] == '\n' ||
         (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
}

void CsvReader::end_line() {
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size() && text_[at_] == '\n') ++at_, ++line_;
}

// Reads on until a whole row is there: up to a line end outside quotes.
void CsvReader::have_row() {
  constexpr std::size_t max_row_bytes = 64u << 20, part = 1u << 20;
  bool in_quotes = false;
  for (std::size_t seen = at_;;) {
    for (; seen < text_.size(); ++seen) {
      if (text_[seen] == '"') in_quotes = !in_quotes;
      if (text_[seen] == '\n' && !in_quotes) return;
    }
    if (at_ > part) text_.erase(0, at_), seen -= at_, at_ = 0;
    if (text_.size() - at_ > max_row_bytes)
      throw UsageError(fmt::format("{}: line {}: a row of more than 64 MiB", name_, line_));
    if (!more_(text_)) return;
  }
}

bool CsvReader::next(CsvRow& row) {
  for (;;) {
    have_row();
    if (!begun_ && std::string_view(text_).starts_with("\xef\xbb\xbf")) at_ = 3;
    begun_ = true;
    if (at_ >= text_.size()) return false;
    row.line = line_;
    row.fields.clear();
    for (bool more = true; more;) {
      row.fields.push_back(field());
      more = at_ < text_.size() && text_[at_] == separator_;
      if (more) ++at_;
    }
    end_line();
    if (row.fields.size() > 1 || !row.fields.front().empty()) return true;
  }
}

std::string CsvReader::field() {
  if (at_ < text_.size() && text_[at_] == '"') return quoted();
  const std::size_t first = at_;
  while (!at_line_end() && text_[at_] != separator_) ++at_;
  return text_.substr(first, at_ - first);
}

std::string CsvReader::quoted() {
  const int begun = line_;
  std::string out;
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') {
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        ++at_;
      } else {
        ++at_;
        if (!at_line_end() && text_[at_] != separator_)
          throw UsageError(fmt::format("{}: line {}: text after the closing quote of a field", name_, line_));
        return out;
      }
    }
    if (c == '\n') ++line_;
    out += c;
  }
  throw UsageError(fmt::format("{}: line {}: unterminated quote", name_, begun));
}

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name) {
  CsvReader reader(name, [&](std::string& to) {
    const bool any = !text.empty();
    to += std::exchange(text, {});
    return any;
  });
  std::vector<CsvRow> rows;
  for (CsvRow row; reader.next(row);) rows.push_back(row);
  return rows;
}

std::string csv_cell(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (at > 0) clean += '\n';
    clean += one_line(text.substr(at, end - at), std::string::npos);
    at = end + 1;
  }
  if (begins_formula(clean)) clean.insert(0, "'");
  if (clean.find_first_of(",\"\n") == clean.npos) return clean;
  std::string quoted = "\"";
  for (const char c : clean) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string_view csv_value(std::string_view cell) {
  if (cell.starts_with("'") && begins_formula(cell.substr(1))) cell.remove_prefix(1);
  return cell;
}

}  // namespace assay
