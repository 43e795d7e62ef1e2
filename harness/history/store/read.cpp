// The whole store in memory.
#include "harness/core/nearest.h"
#include "harness/core/text.h"
#include "harness/history/store/facts.h"
#include "harness/history/store/state.h"
#include "harness/history/store/tables.h"
#include "harness/history/store/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

namespace assay::store {

namespace {

[[noreturn]] void damaged(const Database& database, std::string_view why) {
  throw StoreError(damaged_text(database.path(), why));
}

bool is_main(const std::string& branch) { return branch.empty() || branch == "main" || branch == "master"; }

std::string name_of(const SeriesRow& row) { return fmt::format("{} {}", row.title, row.identity.metric); }

bool is_called(const SeriesRow& row, const std::string& name) {
  return name == row.title || name == row.identity.key || name == name_of(row);
}

// Facts with their place in Contents::facts, which is given on first use.
class FactsTable {
 public:
  FactsTable(Database& database, std::vector<Facts>& out) : database_(database), out_(out) {}

  std::int32_t index(std::int64_t id) {
    const auto [place, fresh] = places_.try_emplace(id, static_cast<std::int32_t>(out_.size()));
    if (fresh) {
      if (!find_.with(id).row()) damaged(database_, fmt::format("facts {} are missing", id));
      try {
        out_.push_back(facts_of_text(find_.bytes(0)));
      } catch (const Error&) {
        damaged(database_, fmt::format("facts {} are not as they were written", id));
      }
    }
    return place->second;
  }

 private:
  Database& database_;
  std::vector<Facts>& out_;
  Statement find_{database_, "SELECT text FROM facts WHERE id = ?1"};
  std::unordered_map<std::int64_t, std::int32_t> places_;
};

struct Linkable {
  std::size_t index = 0;  // in Contents::series
  const SeriesRow* row = nullptr;
  Night first = 0, last = 0;
};

// Everything of the identity but the key, the conditions and the protocol.
bool same_kind(const SeriesIdentity& a, const SeriesIdentity& b) {
  return a.machine == b.machine && a.device == b.device && a.ranks == b.ranks && a.nodes == b.nodes &&
         a.metric == b.metric && a.unit == b.unit && a.better == b.better;
}

// A series that begins while one that differs in its protocol alone ends continues it.
void link_protocols(const std::vector<Linkable>& all, std::vector<Series>& series) {
  constexpr Night max_overlap = 28;  // nights on which both may be measured, to bridge them
  const auto key = [](const Linkable& one) {
    SeriesIdentity identity = one.row->identity;
    identity.protocol.clear();
    return text_of(identity);
  };
  std::map<std::string, std::vector<const Linkable*>> alike;
  for (const Linkable& one : all) alike[key(one)].push_back(&one);
  for (auto& [identity, members] : alike) {
    std::ranges::stable_sort(members, [](const auto* a, const auto* b) { return a->first < b->first; });
    for (std::size_t i = 1; i < members.size(); ++i)
      if (const Linkable& older = *members[i - 1], &newer = *members[i];
          older.last < newer.last && older.last - newer.first <= max_overlap)
        series[newer.index].successor_of = series[older.index].number;
  }
}

void link_aliases(Database& database, const std::vector<Linkable>& all, std::vector<Series>& series) {
  Statement rows(database, "SELECT old, new FROM alias ORDER BY old, new");
  while (rows.row()) {
    const std::string old = rows.text(0), renamed = rows.text(1);
    for (const Linkable& newer : all) {
      if (!is_called(*newer.row, renamed)) continue;
      const Linkable* last = nullptr;
      for (const Linkable& older : all)
        if (is_called(*older.row, old) && older.index != newer.index &&
            same_kind(older.row->identity, newer.row->identity) && (!last || older.last > last->last))
          last = &older;
      if (!last) continue;
      series[newer.index].successor_of = series[last->index].number;
      series[last->index].former = name_of(*last->row);
      series[last->index].name = series[newer.index].name;
    }
  }
}

std::vector<Decision> decisions_of(Database& database) {
  std::vector<Decision> decisions;
  Statement rows(database, "SELECT name, kind, target, reason, person, at, until FROM decision ORDER BY at, name");
  while (rows.row()) {
    const std::int64_t kind = rows.integer(1);
    if (kind < 0 || kind > static_cast<std::int64_t>(DecisionKind::expect)) damaged(database, "a decision of no kind");
    Decision& one = decisions.emplace_back();
    one.kind = static_cast<DecisionKind>(kind);
    rows.read(0, one.uuid), rows.read(2, one.target, one.reason, one.by, one.at, one.until);
  }
  return decisions;
}

}  // namespace

Contents Store::read(std::optional<std::string> branch) const {
  return read_those([&](const std::string& one) { return is_main(one) || one == branch; });
}

Contents Store::read_all() const {
  return read_those([](const std::string&) { return true; });
}

Contents Store::read_those(const std::function<bool(const std::string& branch)>& wanted) const {
  Database& database = state_->database;
  const Transaction transaction(database, Transaction::Kind::read);
  Contents contents;
  contents.revision = database.integer("SELECT value FROM meta WHERE name = 'revision'");
  state_->changes_read = database.integer("SELECT value FROM meta WHERE name = 'changes'");
  const Tables tables = tables_of(database);
  const auto& rows = tables.series;
  const std::int64_t max_series = rows.empty() ? 0 : rows.rbegin()->first;
  if (max_series > 100'000'000) damaged(database, "a series with an id that is too large");
  std::vector<std::vector<Point>> points(static_cast<std::size_t>(max_series) + 1);
  std::vector<bool> known(points.size());
  for (const auto& [id, row] : rows) {
    if (id < 0) damaged(database, "a series with a negative id");
    known[static_cast<std::size_t>(id)] = true;
  }
  FactsTable facts(database, contents.facts);
  std::unordered_set<std::int64_t> ever_broken;
  std::vector<std::vector<std::int64_t>> held;
  each_run(database, [&](const RunRow& row) {
    const auto moment = history::night_of(row.started);
    if (!moment) damaged(database, fmt::format("run {} has no time", row.id));
    const Night night = *moment;
    state_->last_night_read = contents.runs.empty() ? night : std::max(state_->last_night_read, night);
    if (!wanted(row.branch)) return;
    Run& run = contents.runs.emplace_back();
    run.number = row.id;
    run.id = row.name;
    run.started = row.started;
    run.night = night;
    run.machine = at(database, tables.machines, row.machine, "machine");
    run.hardware = row.hardware;
    run.facts = facts.index(row.facts);
    run.commit = row.commit;
    run.branch = row.branch;
    for (const BrokenCase& one : row.broken) {
      run.broken.emplace_back(at(database, tables.benchmarks, one.benchmark, "benchmark"), one.text);
      ever_broken.insert(one.benchmark);
    }
    held.push_back(row.held);
    for (const PackedPoint& point : row.points) {
      const auto series = static_cast<std::size_t>(point.series);
      if (series >= points.size() || !known[series])
        damaged(database, fmt::format("series {} is missing", point.series));
      points[series].push_back(
          {row.id, night, point.log, point.within, facts.index(point.choices), point.disturbed, point.weekly});
    }
  });
  for (std::size_t i = 0; i < held.size(); ++i)
    for (const std::int64_t benchmark : held[i])
      if (ever_broken.contains(benchmark))
        contents.runs[i].held.push_back(at(database, tables.benchmarks, benchmark, "benchmark"));
  std::vector<Linkable> linkable;
  for (const auto& [id, row] : rows) {
    auto& own = points[static_cast<std::size_t>(id)];
    if (own.empty()) continue;
    linkable.push_back({contents.series.size(), &row, own.front().night, own.back().night});
    contents.series.push_back({id, row.identity, name_of(row), {}, {}, std::move(own)});
  }
  link_protocols(linkable, contents.series);
  link_aliases(database, linkable, contents.series);
  contents.decisions = decisions_of(database);
  Statement events(database, "SELECT name, state, document FROM event ORDER BY name");
  while (events.row()) contents.events.push_back({events.text(0), events.text(1), events.text(2)});
  return contents;
}

void Store::alias(const std::string& from, const std::string& to) {
  Database& database = state_->database;
  Transaction transaction(database, Transaction::Kind::write);
  const auto series = tables_of(database).series;
  std::set<std::string> names;
  for (const auto& [id, row] : series) names.insert({row.title, row.identity.key, name_of(row)});
  const std::vector<std::string> candidates(names.begin(), names.end());
  for (const std::string& name : {from, to})
    if (!names.contains(name))
      throw UsageError(fmt::format("{} has no series {}{}", database.path().string(), in_quotes(name),
                                   suggestion(name, candidates)));
  const bool alike = std::ranges::any_of(series, [&](const auto& newer) {
    return is_called(newer.second, to) && std::ranges::any_of(series, [&](const auto& older) {
             return older.first != newer.first && is_called(older.second, from) &&
                    same_kind(older.second.identity, newer.second.identity);
           });
  });
  if (!alike)
    throw UsageError(
        fmt::format("{} and {} have no metric in common on one machine and device", in_quotes(from), in_quotes(to)));
  Statement(database, "INSERT OR IGNORE INTO alias(old, new) VALUES(?1, ?2)").run(from, to);
  database.run("UPDATE meta SET value = value + 1 WHERE name = 'revision'");
  transaction.commit();
}

}  // namespace assay::store
