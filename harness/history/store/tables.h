// The tables of a store as they are, by id, and their rows in the ids of another store.
#pragma once

#include "harness/history/store/database.h"
#include "harness/history/store/store.h"
#include "harness/history/store/writer.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

namespace assay::store {

struct SeriesRow {
  SeriesIdentity identity;
  std::string title;
};

struct Tables {
  std::unordered_map<std::int64_t, std::string> machines, benchmarks, facts;
  std::map<std::int64_t, SeriesRow> series;
};

// The value of an id. Throws StoreError "... is damaged (machine 7 is missing)" if it has none.
template <typename Map>
const auto& at(const Database& database, const Map& map, std::int64_t id, const char* what) {
  const auto found = map.find(id);
  if (found == map.end()) throw StoreError(damaged_text(database.path(), fmt::format("{} {} is missing", what, id)));
  return found->second;
}

// Calls look(row) for the rows of a table; `what` is the name of one of them, for people.
using EachRow = std::function<void(const char* table, const char* columns, const char* what,
                                   const std::function<void(const Statement&)>& look)>;
// Facts, which may be large, only if they are wanted. Throws StoreError if a series refers to a machine or a benchmark
// that is not there.
Tables tables_of(Database& database, bool with_facts, const EachRow& each);
Tables tables_of(Database& database, bool with_facts = false);
// Calls look(row) for every run, in the order of their starts, without keeping the table open meanwhile.
void each_run(Database& database, const std::function<void(RunRow)>& look);

// Rows in the ids of the writer's store.
class Translation {
 public:
  // `tables` must outlive it.
  Translation(const Tables& tables, Writer& writer) : tables_(tables), writer_(writer) {}

  // Translates a row, and drops what refers to missing rows. Absent if even its machine is missing.
  std::optional<RunRow> of(const RunRow& row);
  std::size_t lost() const { return lost_; }  // points, cases and facts dropped so far

 private:
  std::int64_t facts(std::int64_t id);
  std::optional<std::int64_t> benchmark(std::int64_t id);
  std::optional<std::int64_t> series(std::int64_t id);

  const Tables& tables_;
  Writer& writer_;
  std::size_t lost_ = 0;
  std::unordered_map<std::int64_t, std::int64_t> facts_, series_;  // ids there to ids here
};

// Copies the decisions, events and aliases that `to` lacks. If both stores have an event, the larger text stays, so
// that the order of merging does not matter.
void copy_remarks(Database& from, Database& to);

}  // namespace assay::store
