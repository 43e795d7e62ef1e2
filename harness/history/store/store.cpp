#include "harness/history/store/store.h"

#include "harness/core/streams.h"
#include "harness/core/text.h"
#include "harness/history/store/database.h"
#include "harness/history/store/schema.h"
#include "harness/history/store/state.h"
#include "harness/history/store/writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace assay::store {

namespace fs = std::filesystem;

Database ready_database(const fs::path& file, Database::Access access) {
  check_header(file);
  std::error_code none;
  if (access != Database::Access::read && fs::is_regular_file(file, none) && access_to(file) == Database::Access::read)
    throw UsageError(fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
  Database database(file, access);
  if (access == Database::Access::create) database.run("PRAGMA auto_vacuum = INCREMENTAL");
  migrate(database);
  if (!database.read_only()) database.choose_journal();
  return database;
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::Store(Store&&) noexcept = default;
Store::~Store() = default;

Store Store::open(const fs::path& file) {
  return Store(std::make_unique<State>(ready_database(file, Database::Access::create)));
}

Store Store::open_existing(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none))
    throw UsageError(fmt::format("{}: no such history: `assay history add RUN --store {}` begins one", file.string(),
                                 file.string()));
  return Store(std::make_unique<State>(ready_database(file, access_to(file))));
}

Added Store::add(const RunData& run, const AddOptions& options) { return add(std::span(&run, 1), options).front(); }

std::vector<Added> Store::add(std::span<const RunData> runs, const AddOptions& options) {
  std::vector<RunFigures> all;
  for (const RunData& run : runs) all.push_back(figures_of(run, options));
  std::vector<Added> results;
  Transaction transaction(state_->database, Transaction::Kind::write);
  Writer writer(state_->database);
  for (const RunFigures& run : all) {
    Added& added = results.emplace_back();
    added.left_out = run.left_out;
    const RunRow known = writer.version_of(run.name);
    // One that went on since; compacted ones stay.
    const bool newer = known.compacted == 0 &&
                       std::pair(run.records, std::int64_t{run.finished}) > std::pair(known.records, known.finished);
    if (known.id != 0 && !newer) continue;
    RunRow row = writer.row_of(run);
    row.id = known.id;
    writer.put(row);
    added.fresh = true;
    added.points = row.points.size();
  }
  transaction.commit();
  return results;
}

std::optional<Night> Store::last_night() const {
  Statement last(state_->database, "SELECT max(started) FROM run");
  return last.row() && !last.null(0) ? history::night_of(last.text(0)) : std::nullopt;
}

void Store::decide(const Decision& decision) {
  Statement insert(state_->database,
                   "INSERT OR IGNORE INTO decision(name, kind, target, reason, person, at, until) "
                   "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  insert.run(decision.uuid, static_cast<std::int64_t>(decision.kind), decision.target, decision.reason, decision.by,
             decision.at, decision.until);
}

void Store::save_events(std::span<const StoredEvent> events) {
  if (state_->database.read_only()) {
    say("assay: {} cannot be written: the state of {} is not kept, and the next check judges as if this one had not "
        "been\n",
        state_->database.path().string(), plural(static_cast<std::int64_t>(events.size()), "event"));
    return;
  }
  Transaction transaction(state_->database, Transaction::Kind::write);
  Statement put(state_->database,
                "INSERT INTO event(name, state, document) VALUES(?1, ?2, ?3) "
                "ON CONFLICT(name) DO UPDATE SET state = excluded.state, document = excluded.document");
  for (const StoredEvent& event : events) put.run(event.id, event.state, event.document);
  transaction.commit();
}

std::string Store::setting(std::string_view name) const {
  const std::string head = fmt::format("{}=", name);
  Statement find(state_->database, "SELECT name FROM meta WHERE substr(name, 1, length(?1)) = ?1");
  return find.with(head).row() ? find.text(0).substr(head.size()) : "";
}

void Store::set(std::string_view name, const std::string& value) {
  if (state_->database.read_only()) return;
  const std::string head = fmt::format("{}=", name);
  Transaction transaction(state_->database, Transaction::Kind::write);
  Statement(state_->database, "DELETE FROM meta WHERE substr(name, 1, length(?1)) = ?1").run(head);
  if (!value.empty()) Statement(state_->database, "INSERT INTO meta VALUES(?1, 1)").run(head + value);
  transaction.commit();
}

std::optional<std::string> Store::cached(std::string_view name, std::int64_t revision) const {
  Statement find(state_->database, "SELECT bytes FROM cache WHERE name = ?1 AND revision = ?2");
  if (!find.with(name, revision).row()) return std::nullopt;
  return find.text(0);
}

void Store::cache(std::string_view name, std::int64_t revision, std::string_view bytes) {
  Database& database = state_->database;
  if (database.read_only()) return;
  Transaction transaction(database, Transaction::Kind::write);
  // The analysis knows nothing of runs that were added since they were read.
  if (database.integer("SELECT value FROM meta WHERE name = 'changes'") != state_->changes_read ||
      database.integer("SELECT value FROM meta WHERE name = 'revision'") != revision)
    return;
  Statement(database, "DELETE FROM cache WHERE revision <> ?1").run(revision);
  Statement(database, "INSERT OR REPLACE INTO cache(name, revision, bytes) VALUES(?1, ?2, ?3)")
      .run(name, revision, Statement::Blob{bytes});
  Statement(database, "UPDATE meta SET value = max(value, ?1) WHERE name = 'covered'")
      .run(std::int64_t{state_->last_night_read});
  transaction.commit();
}

}  // namespace assay::store
