// The lines and columns of nccl-tests' tables.
#pragma once

#include <cctype>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace assay::report {

using NcclWords = std::vector<std::string>;

NcclWords words_in(const std::string& line);

// The number that is the whole word; with `glued`, one before a text that was printed right behind it.
template <typename T>
std::optional<T> number_in(const std::string& word, bool glued = false) {
  T value{};
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  if (stopped == end) return value;
  const bool text = std::isalpha(static_cast<unsigned char>(*stopped)) || *stopped == '[' || *stopped == '(';
  return glued && text ? std::optional(value) : std::nullopt;
}

// Cuts one of the texts that launchers put before each line, if there is any: "[1,0]<stdout>:", "(head, rank=0,
// pid=12)", "0:", "node1 0:", "node1 |", times. The first date goes into `time`.
bool strip_prefix(std::string& line, std::string& time);
// Cuts all of them.
void strip_prefixes(std::string& line, std::string& time);

struct NcclColumn {
  enum class Kind { integer, text, redop, root, number, wrong, error, other, timestamp };
  Kind kind = Kind::other;
  std::string name;
  int half = -1;        // that it belongs to; -1: to all of the row
  double scale = 1;     // of its unit, to base units
  std::size_t end = 0;  // of its word in the header
};

// Whether a word may stand in the column; as the `last` one of what is printed at once it may have a text behind it.
bool fits(const NcclColumn& column, const std::string& word, bool last);

class NcclColumns {
 public:
  // The columns of most tables, for rows without a header.
  NcclColumns();

  static bool is_header(const NcclWords& words);
  // From the header; a unit may stand in it: "time(us)", "time (us)". Throws UsageError for a unit that is not known.
  void read(const std::string& header);
  // The line of units below the header: each belongs to the column that ends where it does. Throws UsageError as
  // read().
  void read_units(const std::string& line);

  const std::vector<NcclColumn>& all() const { return all_; }
  int halves() const { return halves_; }
  bool has_header() const { return header_; }
  // How many columns are before the halves.
  std::size_t leading() const;

 private:
  std::vector<NcclColumn> all_;
  int halves_ = 0;
  bool header_ = false;
};

}  // namespace assay::report
