#include "harness/crosscheck/peer_tools.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace assay::crosscheck {

namespace {

template <typename Number>
std::optional<Number> number_from(const std::string& word, Number (*parse)(std::string_view)) {
  try {
    return parse(word);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

// size count type redop root, then time algbw busbw #wrong out of place, and the same in place.
enum : std::size_t { size_column, type_column = 2, redop_column, time_column = 5, wrong_column = 8 };

}  // namespace

std::map<std::int64_t, double> read_all_reduce_perf(std::string_view printed) {
  std::map<std::int64_t, double> found;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream text(line);
    std::vector<std::string> columns;
    for (std::string word; text >> word;) columns.push_back(std::move(word));
    if (columns.size() <= wrong_column || columns[type_column] != "float" || columns[redop_column] != "sum") continue;
    const auto bytes = number_from(columns[size_column], parse_integer);
    const auto microseconds = number_from(columns[time_column], parse_real);
    if (!bytes || *bytes <= 0 || !microseconds || !(*microseconds > 0)) continue;
    // "N/A": it does not check.
    if (columns[wrong_column] != "N/A" && number_from(columns[wrong_column], parse_real) != 0)
      throw Error(
          fmt::format("all_reduce_perf: {} wrong elements at {} bytes", one_line(columns[wrong_column], 40), *bytes));
    const double rate = static_cast<double>(*bytes) / (1e-6 * *microseconds);
    if (std::isfinite(rate)) found[*bytes] = rate;
  }
  return found;
}

std::map<std::string, BandwidthMatrix> read_nvbandwidth(std::string_view printed) {
  // Warnings of libraries may surround the document.
  const std::size_t begin = std::min(printed.find('{'), printed.size());
  const std::size_t end = printed.rfind('}');
  if (end == printed.npos || end < begin) throw Error("nvbandwidth: printed no JSON");
  Json json;
  try {
    json = parse_untrusted(printed.substr(begin, end + 1 - begin));
  } catch (const Error& error) {
    throw Error(fmt::format("nvbandwidth: {}", error.what()));
  }
  if (const std::string error = text_member(json, "/nvbandwidth/error"); !error.empty())
    throw Error(fmt::format("nvbandwidth: {}", one_line(error)));
  std::map<std::string, BandwidthMatrix> found;
  const Json& tests = member(json, "/nvbandwidth/testcases");
  if (!tests.is_array()) throw Error("nvbandwidth: its JSON has no testcases");
  for (const Json& test : tests) {
    const std::string name = text_member(test, "/name"), status = text_member(test, "/status");
    if (status == "Error")
      throw Error(fmt::format("nvbandwidth: {} failed: {}", one_line(name), one_line(text_member(test, "/error"))));
    const Json& rows = member(test, "/bandwidth_matrix");
    if (status != "Passed" || !rows.is_array()) continue;
    BandwidthMatrix& matrix = found[name];
    for (const Json& row : rows) {
      matrix.emplace_back();
      for (const Json& cell : row) {
        const auto gigabytes = cell.is_string()   ? number_from(cell.get<std::string>(), parse_real)
                               : cell.is_number() ? std::optional(cell.get<double>())
                                                  : std::nullopt;
        const double rate = 1e9 * gigabytes.value_or(0);
        matrix.back().push_back(rate > 0 && std::isfinite(rate) ? std::optional(rate) : std::nullopt);
      }
    }
  }
  return found;
}

}  // namespace assay::crosscheck
