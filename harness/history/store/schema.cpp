#include "harness/history/store/schema.h"

#include "harness/core/files.h"
#include "harness/history/store/store.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace assay::store {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t application = 0x41535359;  // "ASSY", in the header of the file

// A row of `meta` is a number by name; one named "split-by=FACT" is a setting of how nights are judged (Store::set).
// Points of a run are packed (packed.h): a row each would take a microsecond to read and twice the space.
constexpr const char* version_1 = R"(
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE machine(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE facts(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX facts_hash ON facts(hash);
CREATE TABLE benchmark(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE series(id INTEGER PRIMARY KEY, machine INTEGER NOT NULL, benchmark INTEGER NOT NULL, device TEXT NOT NULL,
  ranks INTEGER NOT NULL, nodes INTEGER NOT NULL, conditions TEXT NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL,
  better INTEGER NOT NULL, protocol TEXT NOT NULL, family TEXT NOT NULL, title TEXT NOT NULL,
  UNIQUE(benchmark, metric, machine, protocol, conditions, device, ranks, nodes, unit, better, family));
CREATE TABLE run(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, started TEXT NOT NULL, machine INTEGER NOT NULL,
  facts INTEGER NOT NULL, hardware TEXT NOT NULL, "commit" TEXT NOT NULL, branch TEXT NOT NULL, records INTEGER NOT NULL,
  finished INTEGER NOT NULL, compacted INTEGER NOT NULL, digest INTEGER NOT NULL, hash INTEGER NOT NULL,
  held BLOB NOT NULL, broken BLOB NOT NULL, points BLOB NOT NULL);
CREATE TABLE event(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE decision(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, target TEXT NOT NULL,
  reason TEXT NOT NULL, person TEXT NOT NULL, at TEXT NOT NULL, until TEXT);
CREATE TABLE alias(id INTEGER PRIMARY KEY, old TEXT NOT NULL, new TEXT NOT NULL, UNIQUE(old, new));
CREATE TABLE cache(name TEXT PRIMARY KEY, revision INTEGER NOT NULL, bytes BLOB NOT NULL);
INSERT INTO meta VALUES('revision', 1), ('changes', 0), ('covered', -1000000);
)";

[[noreturn]] void refuse_newer(const fs::path& file, std::int64_t version, int newest) {
  throw UsageError(fmt::format("{} is of schema {}, written by a newer assay; this one knows schemas up to {}",
                               file.string(), version, newest));
}

std::int64_t version_of(Database& database) { return database.integer("PRAGMA user_version"); }

void set_version(Database& database, int version) {
  database.run(fmt::format("PRAGMA user_version = {}; PRAGMA application_id = {}", version, application).c_str());
}

std::string schema_text(Database& database) {
  Statement statement(database, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name");
  std::string all;
  while (statement.row()) all += statement.text(0) + "\n";
  return all;
}

// The tables that the steps up to `version` make.
std::string schema_text_of_version(std::span<const Migration> steps, std::int64_t version) {
  Database trial;
  for (const Migration& step : steps)
    if (step.to <= version) trial.run(step.sql);
  return schema_text(trial);
}

void keep_copy(Database& database, std::int64_t version) {
  const fs::path copy = fmt::format("{}.schema-{}", database.path().string(), version);
  const TemporaryFolder folder(copy);
  const fs::path unfinished = folder.path() / "copy";
  Statement(database, "VACUUM INTO ?1").run(unfinished.string());
  sync_file_system(unfinished);
  fs::rename(unfinished, copy);
  sync_folder(fs::absolute(copy).parent_path());
}

}  // namespace

std::span<const Migration> migrations() {
  static constexpr std::array<Migration, 1> steps{{{1, version_1}}};
  return steps;
}

void check_header(const fs::path& file, std::span<const Migration> steps) {
  std::error_code none;
  if (const fs::file_status status = fs::status(file, none);
      fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    throw UsageError(fmt::format("{} cannot be a history: it is no file", file.string()));
  std::array<char, 100> header{};
  std::ifstream in(file, std::ios::binary);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) return;
  in.read(header.data(), header.size());
  constexpr std::string_view magic("SQLite format 3\0", 16);
  if (in.gcount() < static_cast<std::streamsize>(header.size()) ||
      std::string_view(header.data(), magic.size()) != magic)
    throw StoreError(damaged_text(file, "it does not begin as one, if it ever was a history"));
  const auto number = [&](std::size_t at) {  // of the format's header, big-endian
    std::int64_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(header[i]);
    return value;
  };
  const std::int64_t version = number(60), program = number(68);
  // A store that was begun, and whose schema is still in the log, has neither.
  if (program != application && (program != 0 || version != 0))
    throw UsageError(fmt::format("{} is no history, but a database of another program", file.string()));
  if (version > newest(steps)) refuse_newer(file, version, newest(steps));
}

void migrate(Database& database, std::span<const Migration> steps) {
  std::int64_t version = version_of(database);
  if (version > newest(steps)) refuse_newer(database.path(), version, newest(steps));
  if (version < newest(steps) && database.read_only())
    throw UsageError(fmt::format("{} is of schema {}, which only who may write it can bring to {}",
                                 database.path().string(), version, newest(steps)));
  if (version < newest(steps)) {
    if (version > 0) keep_copy(database, version);
    Transaction transaction(database, Transaction::Kind::write);
    version = version_of(database);  // another process may have been faster
    if (version == 0 && !schema_text(database).empty())
      throw UsageError(fmt::format("{} is no history, but a database of another program", database.path().string()));
    for (const Migration& step : steps)
      if (step.to > version) database.run(step.sql);
    set_version(database, newest(steps));
    transaction.commit();
  }
  if (schema_text(database) != schema_text_of_version(steps, newest(steps)))
    throw StoreError(damaged_text(database.path(), "its tables are not those of a history"));
}

}  // namespace assay::store
