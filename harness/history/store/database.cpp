#include "harness/history/store/database.h"

#include "harness/core/files.h"
#include "harness/history/store/store.h"

#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace assay::store {

namespace fs = std::filesystem;

namespace {

constexpr int busy_milliseconds = 60'000;

sqlite3* opened(const fs::path& path, int flags) {
  sqlite3* handle = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (result == SQLITE_OK) return handle;
  const int reason = handle ? sqlite3_system_errno(handle) : 0;
  sqlite3_close_v2(handle);
  std::error_code none;
  throw UsageError(fmt::format("{} cannot be opened: {}", path.string(),
                               fs::is_directory(path, none) ? "it is a directory"
                               : reason                     ? std::strerror(reason)
                                                            : sqlite3_errstr(result)));
}

// What is not a table of ours must not run: triggers, views and functions of a file that someone else made.
void harden(sqlite3* handle) {
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
}

}  // namespace

bool shares_memory(std::int64_t file_system) {
  // ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, ZFS, F2FS, bcachefs, JFS; see statfs(2).
  constexpr std::array<std::int64_t, 9> local = {0xEF53,     0x58465342, 0x9123683E, 0x01021994, 0x858458F6,
                                                 0x2FC12FC1, 0xF2F52010, 0xCA451A4E, 0x3153464A};
  return std::ranges::find(local, file_system) != local.end();
}

std::string damaged_text(const fs::path& file, std::string_view why) {
  return fmt::format("{} is damaged ({}): `assay history store salvage {} --out NEW` saves what can be read",
                     file.string(), why, file.string());
}

Database::Database(const fs::path& path, Access access) : path_(path) {
  ignore_file_size_signal();
  const int flags = access == Access::read     ? SQLITE_OPEN_READONLY
                    : access == Access::create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                               : SQLITE_OPEN_READWRITE;
  handle_.reset(opened(fs::absolute(path), flags));
  harden(handle());
  sqlite3_db_config(handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_busy_timeout(handle(), busy_milliseconds);
  run("PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -32768");
}

Database::Database() : handle_(opened(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) {}

void Database::choose_journal() {
  sqlite3_db_config(handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  struct statfs about {};
  const bool log =
      ::statfs(path_.c_str(), &about) == 0 && shares_memory(static_cast<std::int64_t>(about.f_type) & 0xFFFFFFFF);
  const auto mode = [&](const char* sql) {
    Statement statement(*this, sql);
    return statement.row() ? statement.text(0) : std::string();
  };
  const std::string wanted = log ? "wal" : "delete";
  if (mode("PRAGMA journal_mode") == wanted) return;
  try {
    mode(log ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
  } catch (const StoreError&) {  // others have it open: it stays as it is, which is as safe, until the next time
    if (!log) throw;
  }
}

void Database::fail(int result) const {
  const std::string name = path_.string();
  switch (result & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: throw StoreError(damaged_text(path_, sqlite3_errmsg(handle())));
    case SQLITE_FULL: throw StoreError(fmt::format("{}: the disk is full: nothing was changed", name));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw StoreError(fmt::format("{} has been locked by another process for {} s: nothing was changed", name,
                                   busy_milliseconds / 1000));
    case SQLITE_READONLY: throw UsageError(fmt::format("{} cannot be written", name));
    default: break;
  }
  const int reason = sqlite3_system_errno(handle());
  const bool io = (result & 0xFF) == SQLITE_IOERR || (result & 0xFF) == SQLITE_CANTOPEN;
  throw StoreError(fmt::format("{}: {}", name, io && reason ? std::strerror(reason) : sqlite3_errmsg(handle())));
}

void Database::run(const char* sql) {
  if (const int result = sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr); result != SQLITE_OK) fail(result);
}

std::int64_t Database::integer(const char* sql) {
  Statement statement(*this, sql);
  return statement.row() ? statement.integer(0) : 0;
}

Statement::Statement(Database& database, const char* sql) : database_(&database) {
  sqlite3_stmt* handle = nullptr;
  const int result = sqlite3_prepare_v3(database.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  handle_.reset(handle);
  check(result);
}

bool Statement::row() {
  const int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) return true;
  sqlite3_reset(handle_.get());
  if (result != SQLITE_DONE) database_->fail(result);
  return false;
}

std::string_view Statement::bytes(int column) const {
  const void* start = sqlite3_column_blob(handle_.get(), column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  return start ? std::string_view(static_cast<const char*>(start), size) : std::string_view();
}

void Statement::bind(int index, std::string_view text) {
  check(sqlite3_bind_text64(handle_.get(), index, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
}

void Statement::bind(int index, const Blob& blob) {
  check(sqlite3_bind_blob64(handle_.get(), index, blob.bytes.data() ? blob.bytes.data() : "", blob.bytes.size(),
                            SQLITE_TRANSIENT));
}

void Statement::check(int result) const {
  if (result != SQLITE_OK) database_->fail(result);
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  database.run(kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // A full disk may have ended it already.
  if (open_ && !sqlite3_get_autocommit(database_.handle()))
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace assay::store
