// Results of another tool, kept so that millions of them fit into memory.
#pragma once

#include "harness/json/shared.h"
#include "harness/record/record.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Where and when results were measured. What a format does not say is empty. Results of equal contexts are of one run.
struct ForeignContext {
  std::string time;     // ISO 8601, UTC
  std::string machine;  // a host or a kind of machine
  std::string commit;
  std::map<std::string, std::string> facts;  // kept as labels of the run
  SharedJson environment;                    // members of run.json's; "hostnames" comes from `machine` if it has none
  int part = 0;                              // tells apart what is equal in all the rest: a machine twice in a file

  // Equal for equal contexts.
  std::string text() const;
};

// The ranks that measured a result together.
struct ForeignWorld {
  int ranks = 1;
  int nodes = 1;
  std::vector<RankResult> known;  // those that the file names, by rank
  std::string device = "cpu";     // as in records
};

// One result: a figure, or why there is none.
struct ForeignFigure {
  std::string name;  // of the case
  std::string metric;
  std::string unit;  // base units, as in records
  Better better = Better::higher;
  bool guessed = false;               // `better` comes from the name alone
  std::vector<double> values;         // one, or a sample each, all finite; empty: the result has no figure
  std::optional<Interval> ci95 = {};  // that the tool found; else it comes from the values
  Status status = Status::ok;         // as the tool has it, of the worst sample
  std::string reason = {};            // why it is not ok: the tool's message
  std::optional<Check> check = {};    // that the tool made: wrong elements, a return code
  bool comparable = true;
  Attributes conditions = {};                      // of the case: how it was measured
  Attributes labels = {};                          // of the case: remarks
  std::shared_ptr<const ForeignWorld> world = {};  // null: one rank on the context's machine
};

// Texts by number; equal texts have one.
class TextPool {
 public:
  std::uint32_t id(std::string_view text);
  std::string_view text(std::uint32_t id) const;

 private:
  void grow();

  std::string bytes_;
  std::vector<std::uint64_t> ends_;   // in bytes_
  std::vector<std::uint32_t> slots_;  // a hash table of ids + 1; 0: free
};

// The results of a run.
class ForeignRun {
 public:
  ForeignContext about;

  void add(ForeignFigure&& result, TextPool& texts);
  // Calls use() for the results of each case, with the samples of each metric together, in the order in which the
  // names of cases first came.
  void each_case(const TextPool& texts, const std::function<void(const std::vector<ForeignFigure>&)>& use) const;
  // Calls look() for the name, the metric and the direction of each result with a figure; it may change the direction,
  // and whether it is guessed.
  void each_direction(
      const TextPool& texts,
      const std::function<void(std::string_view name, std::string_view metric, Better& better, bool& guessed)>& look);
  bool empty() const { return rows_.empty(); }

 private:
  // A result with at most one value, or the number of one that says more.
  struct Row {
    std::uint32_t name, metric, unit, world;
    std::uint32_t flags;
    double value, low, high;
  };
  ForeignFigure figure(const Row& row, const TextPool& texts) const;

  std::deque<Row> rows_;
  std::vector<std::shared_ptr<const ForeignWorld>> worlds_{nullptr};
  std::vector<ForeignFigure> more_;
};

// What a file holds.
struct ForeignFile {
  TextPool texts;
  std::vector<ForeignRun> runs;  // in the order in which they began
  std::size_t not_read = 0;      // lines, rows or entries that became no figure
  std::string first_not_read;    // "line 7: ..."; empty if there is none
  std::vector<std::string> remarks;

  // All results of all runs, case by case.
  std::vector<ForeignFigure> figures() const;
};

}  // namespace assay
