#include "harness/history/store/tables.h"

namespace assay::store {

namespace {

// `statement` selects series_columns. Throws StoreError if it refers to a machine or a benchmark that is not there.
SeriesRow series_row(const Statement& statement, const Tables& tables, const Database& database) {
  std::int64_t machine = 0, benchmark = 0, higher = 0;
  SeriesRow row;
  SeriesIdentity& id = row.identity;
  statement.read(1, machine, benchmark, id.device, id.ranks, id.nodes, id.conditions, id.metric, id.unit, higher,
                 id.protocol, id.family, row.title);
  id.machine = at(database, tables.machines, machine, "machine");
  id.key = at(database, tables.benchmarks, benchmark, "benchmark");
  id.better = higher != 0 ? Better::higher : Better::lower;
  return row;
}

}  // namespace

Tables tables_of(Database& database, bool with_facts, const EachRow& each) {
  constexpr const char* series_columns =
      "id, machine, benchmark, device, ranks, nodes, conditions, metric, unit, better, protocol, family, title";
  Tables tables;
  const auto texts = [&](const char* table, const char* columns, const char* what, auto& to) {
    each(table, columns, what, [&to](const Statement& row) { to[row.integer(0)] = row.text(1); });
  };
  texts("machine", "id, name", "machine", tables.machines);
  texts("benchmark", "id, key", "benchmark", tables.benchmarks);
  if (with_facts) texts("facts", "id, text", "set of facts", tables.facts);
  each("series", series_columns, "series",
       [&](const Statement& row) { tables.series[row.integer(0)] = series_row(row, tables, database); });
  return tables;
}

Tables tables_of(Database& database, bool with_facts) {
  return tables_of(database, with_facts, [&](const char* table, const char* columns, const char*, const auto& look) {
    Statement rows(database, fmt::format("SELECT {} FROM {}", columns, table).c_str());
    while (rows.row()) look(rows);
  });
}

void each_run(Database& database, const std::function<void(RunRow)>& look) {
  std::vector<std::int64_t> ids;
  Statement order(database, "SELECT id FROM run ORDER BY started, name");
  while (order.row()) ids.push_back(order.integer(0));
  Statement find(database, fmt::format("SELECT {} FROM run WHERE id = ?1", run_columns).c_str());
  for (const std::int64_t id : ids) {
    RunRow row;
    try {
      if (!find.with(id).row()) throw Error(fmt::format("run {} is missing", id));
      row = run_row(find);
    } catch (const StoreError&) {
      throw;
    } catch (const Error& error) {
      throw StoreError(damaged_text(database.path(), error.what()));
    }
    find.with(id);
    look(std::move(row));
  }
}

std::int64_t Translation::facts(std::int64_t id) {
  const auto [place, fresh] = facts_.try_emplace(id, 0);
  if (fresh) {
    const auto found = tables_.facts.find(id);
    if (found == tables_.facts.end()) ++lost_;
    place->second = writer_.facts(found == tables_.facts.end() ? "{}" : found->second);
  }
  return place->second;
}

std::optional<std::int64_t> Translation::benchmark(std::int64_t id) {
  const auto found = tables_.benchmarks.find(id);
  if (found != tables_.benchmarks.end()) return writer_.benchmark(found->second);
  ++lost_;
  return std::nullopt;
}

std::optional<std::int64_t> Translation::series(std::int64_t id) {
  const auto [place, fresh] = series_.try_emplace(id, 0);
  if (fresh)
    if (const auto found = tables_.series.find(id); found != tables_.series.end())
      place->second = writer_.series(found->second.identity, text_of(found->second.identity), found->second.title);
  if (place->second == 0) ++lost_;
  return place->second == 0 ? std::nullopt : std::optional(place->second);
}

std::optional<RunRow> Translation::of(const RunRow& row) {
  const auto machine = tables_.machines.find(row.machine);
  if (machine == tables_.machines.end()) return std::nullopt;
  RunRow made = row;
  made.id = 0;
  made.machine = writer_.machine(machine->second);
  made.facts = facts(row.facts);
  made.held.clear();
  for (const std::int64_t one : row.held)
    if (const auto id = benchmark(one)) made.held.push_back(*id);
  made.broken.clear();
  for (const BrokenCase& one : row.broken)
    if (const auto id = benchmark(one.benchmark)) made.broken.push_back({*id, one.text});
  made.points.clear();
  for (PackedPoint point : row.points)
    if (const auto id = series(point.series)) {
      point.series = *id;
      point.choices = facts(point.choices);
      made.points.push_back(point);
    }
  return made;
}

void copy_remarks(Database& from, Database& to) {
  // Each table by itself, so that of a damaged one only its own rows are lost.
  const auto copy = [&](const char* select, const char* insert, int columns) {
    Statement rows(from, select);
    Statement put(to, insert);
    while (rows.row()) {
      std::vector<std::optional<std::string>> values(static_cast<std::size_t>(columns));
      for (int i = 0; i < columns; ++i) rows.read(i, values[static_cast<std::size_t>(i)]);
      put.run(values);
    }
  };
  copy("SELECT old, new FROM alias ORDER BY id", "INSERT OR IGNORE INTO alias(old, new) VALUES(?1, ?2)", 2);
  copy("SELECT name, kind, target, reason, person, at, until FROM decision ORDER BY id",
       "INSERT OR IGNORE INTO decision(name, kind, target, reason, person, at, until) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "
       "?7)",
       7);
  copy("SELECT name, state, document FROM event ORDER BY id",
       "INSERT INTO event(name, state, document) VALUES(?1, ?2, ?3) ON CONFLICT(name) DO UPDATE SET state = "
       "excluded.state, "
       "document = excluded.document WHERE (excluded.document, excluded.state) > (document, state)",
       3);
  // Settings of how nights are judged, which a store keeps if it has its own of that name.
  copy("SELECT name FROM meta WHERE instr(name, '=') > 0 ORDER BY name",
       "INSERT INTO meta SELECT ?1, 1 WHERE NOT EXISTS(SELECT 1 FROM meta WHERE substr(name, 1, instr(name, '=')) = "
       "substr(?1, 1, instr(?1, '=')))",
       1);
}

}  // namespace assay::store
