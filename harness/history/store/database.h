// SQLite for the store: statements, transactions, and errors with a remedy. Only this room includes sqlite3.h.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::store {

// Whether several processes of one machine may share memory by files of this file system (statfs's f_type), as SQLite's
// write-ahead log needs: not on NFS, Lustre, GPFS, FUSE and whatever is not known.
bool shares_memory(std::int64_t file_system);

// The message for a damaged file.
std::string damaged_text(const std::filesystem::path& file, std::string_view why);

// One connection. Everything throws UsageError if the path cannot be used, StoreError for a damaged file, a full disk,
// and a file that stays locked for a minute.
class Database {
 public:
  enum class Access { create, write, read };

  // To read, of a file that nobody has open neither a lock nor a log is needed, nor may one be made.
  Database(const std::filesystem::path& path, Access access);
  // In memory, to try a schema.
  Database();

  const std::filesystem::path& path() const { return path_; }
  sqlite3* handle() const { return handle_.get(); }
  bool read_only() const { return read_only_; }
  // Throws StoreError if somebody has written the file since it was opened without a lock.
  void check_unchanged() const;
  void run(const char* sql);
  std::int64_t integer(const char* sql);
  // Throws what `result`, one of SQLite's codes, means.
  [[noreturn]] void fail(int result) const;
  // Sets the journal that suits the file system, and lets closing write the log into the file. To be called once it is
  // known to be a store of this schema: before, not a byte of it changes.
  void choose_journal();

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::filesystem::path path_;
  bool read_only_ = false;
  std::string unlocked_;  // of a file without a lock: its state when it was opened
  std::unique_ptr<sqlite3, Close> handle_;
};

// To write if this user may write the file and its folder, as the log needs; else to read, and errno says why.
Database::Access access_to(const std::filesystem::path& file);

// A prepared statement. Columns and parameters are those of SQLite: parameters from 1, columns from 0.
class Statement {
 public:
  Statement(Database& database, const char* sql);

  // Starts it again with these parameters.
  template <typename... Values>
  Statement& with(const Values&... values) {
    sqlite3_reset(handle_.get());
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }
  // The next row, if there is one.
  bool row();
  // To the end, for statements without rows.
  void run() {
    while (row()) {
    }
  }
  template <typename... Values>
  void run(const Values&... values) {
    with(values...).run();
  }
  void run(const std::vector<std::optional<std::string>>& values) {
    with();
    for (std::size_t i = 0; i < values.size(); ++i) bind(static_cast<int>(i) + 1, values[i]);
    run();
  }

  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  // Bytes of a text or blob, until the next row.
  std::string_view bytes(int column) const;
  std::string text(int column) const { return std::string(bytes(column)); }
  // The columns from this one on, in their order.
  template <typename... Values>
  void read(int column, Values&... values) const {
    (get(column++, values), ...);
  }
  bool null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }

  struct Blob {
    std::string_view bytes;
  };

 private:
  void get(int column, std::int64_t& to) const { to = integer(column); }
  void get(int column, int& to) const { to = static_cast<int>(integer(column)); }
  void get(int column, std::string& to) const { to = bytes(column); }
  void get(int column, std::optional<std::string>& to) const {
    if (null(column))
      to.reset();
    else
      to = text(column);
  }
  void bind(int index, std::int64_t value) { check(sqlite3_bind_int64(handle_.get(), index, value)); }
  void bind(int index, std::string_view text);
  void bind(int index, const std::string& text) { bind(index, std::string_view(text)); }
  void bind(int index, const Blob& blob);
  void bind(int index, std::nullptr_t) { check(sqlite3_bind_null(handle_.get(), index)); }
  void bind(int index, const std::optional<std::string>& text) {
    if (text)
      bind(index, std::string_view(*text));
    else
      bind(index, nullptr);
  }
  void check(int result) const;

  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

// Taken back unless committed.
class Transaction {
 public:
  enum class Kind { read, write };

  Transaction(Database& database, Kind kind);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace assay::store
