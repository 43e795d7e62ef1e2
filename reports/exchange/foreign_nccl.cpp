// What nccl-tests writes: its JSON (-J), and the table on its standard output.
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "reports/exchange/foreign.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

namespace assay::report {

namespace {

constexpr double giga = 1e9;
constexpr std::array<std::string_view, 2> places = {"out_of_place", "in_place"};

struct Row {
  std::string type, redop;
  double bytes = 0;
};

class NcclReader {
 public:
  explicit NcclReader(const std::string& file) : test_(std::filesystem::path(file).stem().string()) {}

  void not_read(const std::string& place, const std::string& what) { figures_.not_read(place, what); }

  // `wrong` is absent if results were not checked; a bandwidth that is absent is unknown.
  void add(const Row& row, std::string_view place, std::optional<double> algbw, std::optional<double> busbw,
           std::optional<double> wrong) {
    ForeignFigure figure;
    figure.name = fmt::format("{}/{}/{}/bytes={:.0f}/{}", test_, row.type, row.redop, row.bytes, place);
    figure.unit = "B/s";
    if (wrong) {
      figure.check = Check{"wrong_elements", *wrong == 0, wrong, 0, {}};
      if (*wrong != 0) figure.status = Status::failed, figure.reason = fmt::format("{:.0f} wrong elements", *wrong);
      wrong_ += *wrong != 0;
    }
    if (!algbw || !busbw) return figures_.add_without(figure, Status::error, "it has no bandwidth");
    figure.metric = "busbw", figures_.add(figure, giga * *busbw);
    figure.check.reset();
    figure.metric = "algbw", figures_.add(figure, giga * *algbw);
  }

  // The test as a whole ended badly; only the first reason is kept.
  void fail(Status status, const std::string& reason) {
    if (failure_) return;
    failure_ = ForeignFigure{};
    failure_->name = test_, failure_->status = status, failure_->reason = reason;
  }
  // Values that the test counts as wrong; absent if it only says that there are some.
  void out_of_bounds(std::optional<double> count) {
    out_of_bounds_ = true;
    reason_ = count ? fmt::format("{:.0f} values out of bounds", *count) : "values out of bounds";
  }

  // A failure that no row shows is that of every row, as none of them can be trusted; without rows it is the test's.
  ForeignFile take() {
    if (out_of_bounds_ && wrong_ == 0) fail(Status::failed, reason_);
    ForeignFile file = figures_.take();
    if (!failure_) return file;
    for (ForeignFigure& figure : file.figures)
      if (figure.status < failure_->status) figure.status = failure_->status, figure.reason = failure_->reason;
    if (file.figures.empty()) file.figures.push_back(*failure_);
    return file;
  }

 private:
  std::string test_;
  FigureCollector figures_;
  std::size_t wrong_ = 0;  // rows
  bool out_of_bounds_ = false;
  std::string reason_;
  std::optional<ForeignFigure> failure_;
};

ForeignFile read_json_results(const std::string& text, const std::string& file) {
  const Json json = parse_foreign_json(text, file);
  NcclReader reader(file);
  std::size_t number = 0;
  for (const Json& one : need_list(json, "/results", file, "nccl-tests")) {
    const std::string at = fmt::format("results/{}", number++);
    const auto size = number_member(one, "/size");
    if (!size) {
      reader.not_read(at, "has no size");
      continue;
    }
    const Row row{text_member(one, "/type"), text_member(one, "/redop"), *size};
    bool any = false;
    for (const std::string_view place : places) {
      const Json& half = member(one, fmt::format("/{}", place));
      if (!half.is_object()) continue;
      any = true;
      reader.add(row, place, number_member(half, "/alg_bw"), number_member(half, "/bus_bw"),
                 number_member(half, "/nwrong"));
    }
    if (!any) reader.not_read(at, "is neither out of place nor in place");
  }
  const auto count = number_member(json, "/out_of_bounds/count");
  if (count.value_or(0) > 0 || member(json, "/out_of_bounds/okay") == Json(false)) reader.out_of_bounds(count);
  if (member(json, "/average_bus_bandwidth/okay") == Json(false))
    reader.fail(Status::failed, "its average bus bandwidth is below what was asked");
  return reader.take();
}

// "# Out of bounds values : 3 FAILED", "# Avg bus bandwidth : 1.2 FAILED".
void read_comment(const std::string& line, NcclReader& reader) {
  if (line.find("FAILED") == std::string::npos) return;
  const std::size_t colon = line.find(':');
  double count = 0;
  std::istringstream after(colon == std::string::npos ? "" : line.substr(colon + 1));
  if (line.find("Out of bounds") != std::string::npos)
    reader.out_of_bounds(after >> count ? std::optional(count) : std::nullopt);
  else
    reader.fail(Status::failed, line.substr(line.find_first_not_of("# \t")));
}

// "n1: Test NCCL failure common.cu:961 'unhandled cuda error'"
bool tells_failure(const std::string& line) {
  const std::size_t test = line.find("Test ");
  return test != std::string::npos && line.find("fail", test) != std::string::npos;
}

template <typename T>
std::optional<T> number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

// size count type redop root, then time algbw busbw #wrong out of place and in place. Whether it was such a row.
bool read_row(const std::string& line, NcclReader& reader) {
  std::istringstream stream(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  if (words.size() != 13 || !number<std::int64_t>(words[0]) || !number<std::int64_t>(words[1]) ||
      !number<std::int64_t>(words[4]))
    return false;
  const Row row{words[2], words[3], *number<double>(words[0])};
  for (const std::size_t half : {5, 9}) {
    for (std::size_t i = half; i < half + 3; ++i)
      if (!number<double>(words[i])) return false;
    if (words[half + 3] != "N/A" && !number<double>(words[half + 3])) return false;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t half = 5 + 4 * i;
    // Before 2.13 the last column is the largest error: one such as 0e+00 or 2e-07 is rounding, and counts nothing.
    const std::string& last = words[half + 3];
    const auto wrong = number<double>(last);
    const bool rounding = wrong && *wrong < 1 && last != "0";
    reader.add(row, places[i], number<double>(words[half + 1]), number<double>(words[half + 2]),
               rounding ? std::nullopt : wrong);
  }
  return true;
}

}  // namespace

ForeignFile read_nccl_tests(const std::string& text, const std::string& file) {
  if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{')
    return read_json_results(text, file);
  NcclReader reader(file);
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    if (line[first] == '#')
      read_comment(line, reader);
    else if (tells_failure(line))
      reader.fail(Status::error, line.substr(first));
    else if (!read_row(line, reader))
      reader.not_read(fmt::format("line {}", number), line.substr(first));
  }
  ForeignFile all = reader.take();
  if (all.figures.empty())
    throw UsageError(fmt::format("{}: no table and no JSON of nccl-tests{}", file,
                                 all.not_read > 0 ? "; the first line that is none: " + all.first_not_read : ""));
  return all;
}

}  // namespace assay::report
