// Figures and checks of a record. members() lists those of their JSON form (harness/json/members.h).
#pragma once

#include "harness/core/words.h"
#include "harness/statistics/statistics.h"

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Named texts of a record: its conditions, choices and labels.
using Attributes = std::map<std::string, std::string>;

enum class Better { higher, lower };
constexpr auto words(Better) { return std::to_array<std::string_view>({"higher", "lower"}); }

struct Metric {
  std::string name;             // throughput, bandwidth, algbw, busbw, latency, ...
  std::optional<double> value;  // in `unit`
  std::string unit;             // base units: FLOP/s, B/s, s, B, J, img/s, tokens/s, 1
  std::optional<Interval> ci95;
  Better better = Better::higher;
  std::optional<double> of_peak;    // fraction of the peak that the record's labels name
  std::optional<double> reference;  // the normal value in `unit`, from a file with sources
  // The work of one repetition (FLOP, bytes, calls), if the figure follows from the median of the record's samples: the
  // rate work / median, or, where lower is better, the time median / work.
  std::optional<double> work = {};

  static void members(auto& self, auto& io) {
    io("name", self.name), io("value", self.value), io("unit", self.unit), io("ci95", self.ci95);
    io("better", self.better), io("of_peak", self.of_peak), io("reference", self.reference);
    io.sparse("work", self.work);
  }
};

// Sets value and interval of a metric with `work` from samples: their number and summary. Absent without samples, and
// for a rate over no time.
void set_from_samples(Metric& metric, std::size_t count, const Summary& times);

// A time-stamped series (of a sensor, of losses); `at` in seconds since the record's start.
struct Series {
  std::string unit;
  std::vector<double> at;
  std::vector<std::optional<double>> values;

  static void members(auto& self, auto& io) { io("unit", self.unit), io("at", self.at), io("values", self.values); }
};

// A figure for each pair of ranks: from the row's to the column's.
struct Matrix {
  std::string metric;  // bandwidth, latency
  std::string unit;
  Better better = Better::higher;
  std::vector<int> ranks;      // the ranks of rows and columns, in their order
  std::vector<double> values;  // row by row; NaN if there is none, as on the diagonal

  double at(std::size_t row, std::size_t column) const { return values[row * ranks.size() + column]; }
};

// Ranks that made a collective call together, while the other groups of the same grouping made theirs.
struct RankGroup {
  int grouping = 0;  // from 0; each rank is in at most one group of it
  std::vector<int> ranks;
  double busbw = 0;  // B/s

  static void members(auto& self, auto& io) {
    io("grouping", self.grouping), io("ranks", self.ranks), io("busbw", self.busbw);
  }
};

// A rank that a failed check points to.
struct Culprit {
  int rank = 0;                    // that found something wrong
  std::optional<int> sender = {};  // whose message was wrong, if it is known

  static void members(auto& self, auto& io) { io("rank", self.rank), io("sender", self.sender); }
  auto operator<=>(const Culprit&) const = default;
};

struct Check {
  std::string name;  // relative_error, wrong_elements, ...
  bool passed = true;
  std::optional<double> value;
  std::optional<double> limit;
  std::vector<std::string> detail;     // up to 20 places that are wrong, for people
  std::vector<Culprit> culprits = {};  // in a world of several ranks, all of them

  static void members(auto& self, auto& io) {
    io("name", self.name), io("passed", self.passed), io("value", self.value), io("limit", self.limit);
    io("detail", self.detail), io.sparse("culprits", self.culprits);
  }
};

// The one rank that the failed checks point to; absent if they point to none or several.
std::optional<int> only_culprit(const std::vector<Check>& checks);

}  // namespace assay
