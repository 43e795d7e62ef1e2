// Puts runs into the tables of a store, within a transaction that the caller began.
#pragma once

#include "harness/history/store/database.h"
#include "harness/history/store/figures.h"
#include "harness/history/store/packed.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace assay::store {

// A row of the table `run`; numbers are ids of other tables.
struct RunRow {
  std::int64_t id = 0;
  std::string name, started;
  std::int64_t machine = 0, facts = 0;
  std::string hardware, commit, branch;
  std::int64_t records = 0, finished = 0, compacted = 0, digest = 0;
  std::vector<std::int64_t> held;
  std::vector<BrokenCase> broken;
  std::vector<PackedPoint> points;

  // The store keeps the larger of two versions of a run, whichever came first.
  auto version() const { return std::tuple(compacted, records, finished, digest); }
};

// The columns of RunRow in their order, for SELECT.
inline constexpr const char* run_columns =
    "id, name, started, machine, facts, hardware, \"commit\", branch, records, finished, compacted, digest, hash, "
    "held, "
    "broken, points";
// The row of a statement that selects these columns. Throws Error if its bytes have changed since they were written.
RunRow run_row(const Statement& statement);

class Writer {
 public:
  explicit Writer(Database& database) : database_(database) {}

  // The ids of rows, which are added if they are missing. Use a Writer for one transaction: a rollback removes the
  // rows.
  std::int64_t machine(const std::string& name);
  std::int64_t facts(const std::string& text);
  std::int64_t benchmark(const std::string& key);
  // `name` is text_of(identity).
  std::int64_t series(const SeriesIdentity& identity, const std::string& name, const std::string& title);

  RunRow row_of(const RunFigures& run);
  // The run of this name without its points and cases; id 0: there is none.
  RunRow version_of(const std::string& name);
  // Inserts a run, or replaces the run with its id.
  void put(const RunRow& row);

 private:
  // The id of the row that `find` finds by these values, else of the row that `insert` makes from them and `more`.
  template <typename... Values, typename... More>
  std::int64_t id_of(std::unordered_map<std::string, std::int64_t>& known, const std::string& text, Statement& find,
                     Statement& insert, const std::tuple<Values...>& values, const More&... more) {
    const auto found = known.try_emplace(text, 0);
    const auto place = found.first;
    if (!found.second) return place->second;
    std::apply(
        [&](const auto&... value) {
          if (find.with(value...).row()) {
            place->second = find.integer(0);
          } else {
            insert.run(value..., more...);
            place->second = sqlite3_last_insert_rowid(database_.handle());
          }
        },
        values);
    return place->second;
  }

  Database& database_;
  Statement find_machine_{database_, "SELECT id FROM machine WHERE name = ?1"};
  Statement add_machine_{database_, "INSERT INTO machine(name) VALUES(?1)"};
  Statement find_benchmark_{database_, "SELECT id FROM benchmark WHERE key = ?1"};
  Statement add_benchmark_{database_, "INSERT INTO benchmark(key) VALUES(?1)"};
  Statement find_facts_{database_, "SELECT id FROM facts WHERE hash = ?1 AND text = ?2"};
  Statement add_facts_{database_, "INSERT INTO facts(hash, text) VALUES(?1, ?2)"};
  Statement find_series_{
      database_,
      "SELECT id FROM series WHERE benchmark = ?2 AND metric = ?7 AND machine = ?1 AND protocol = ?10 AND "
      "conditions = ?6 AND device = ?3 AND ranks = ?4 AND nodes = ?5 AND unit = ?8 AND better = ?9 AND "
      "family = ?11"};
  Statement add_series_{
      database_,
      "INSERT INTO series(machine, benchmark, device, ranks, nodes, conditions, metric, unit, better, "
      "protocol, family, title) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"};
  Statement find_run_{database_, "SELECT id, started, records, finished, compacted, digest FROM run WHERE name = ?1"};
  Statement put_run_{
      database_,
      "INSERT OR REPLACE INTO run(id, name, started, machine, facts, hardware, \"commit\", branch, records, "
      "finished, compacted, digest, hash, held, broken, points) "
      "VALUES(nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"};
  Statement covered_{database_, "SELECT value FROM meta WHERE name = 'covered'"};
  Statement changed_{database_, "UPDATE meta SET value = value + 1 WHERE name = 'changes'"};
  Statement revised_{database_, "UPDATE meta SET value = value + 1 WHERE name = 'revision'"};
  std::unordered_map<std::string, std::int64_t> machines_, benchmarks_, facts_, series_;
};

}  // namespace assay::store
