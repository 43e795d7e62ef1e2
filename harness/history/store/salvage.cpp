// What can still be read of a damaged store. Rows are looked up one by one, so that a damaged page costs only what is
// on it; where the first page is damaged, that of an empty store takes its place: all stores have their tables at the
// same pages, because nothing is ever dropped or vacuumed whole.
#include "harness/core/files.h"
#include "harness/history/store/schema.h"
#include "harness/history/store/tables.h"
#include "harness/history/store/writer.h"

#include <fmt/format.h>

#include <fstream>
#include <functional>

namespace assay::store {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t max_bytes = std::uintmax_t{64} << 30;

void copy_bytes(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error)
    throw StoreError(fmt::format("{} cannot be copied to {}: {}", from.string(), to.string(), error.message()));
}

// Whether SQLite finds the tables of this schema in it.
bool readable(const fs::path& file) {
  try {
    check_header(file);
    Database database(file, Database::Access::write);
    if (database.integer("PRAGMA user_version") != newest(migrations())) return false;
    migrate(database);  // nothing to do but to compare the tables
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Puts the first page of `fresh`, an empty store, into the file.
void replace_first_page(const fs::path& file, const fs::path& fresh) {
  constexpr std::size_t page = 4096;
  std::string first = read_whole(fresh, max_bytes).substr(0, page);
  const auto put = [&](std::size_t at, std::uint32_t value) {  // of the format's header, big-endian
    for (int i = 0; i < 4; ++i) first[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  };
  put(28, static_cast<std::uint32_t>(fs::file_size(file) / page));  // pages
  put(32, 0), put(36, 0);                                           // none is free
  std::copy_n(first.begin() + 24, 4, first.begin() + 92);           // the version for which that holds
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.write(first.data(), static_cast<std::streamsize>(first.size()));
  if (!out.flush()) throw StoreError(fmt::format("{} cannot be written", file.string()));
}

class Salvage {
 public:
  explicit Salvage(Database& damaged) : damaged_(damaged) {}

  std::vector<std::string> into(Database& fresh) {
    const Tables tables = tables_of(damaged_, true, [&](const auto&... table) { each_id(table...); });
    Transaction transaction(fresh, Transaction::Kind::write);
    Writer writer(fresh);
    Translation translation(tables, writer);
    std::size_t runs = 0;
    each_id("run", run_columns, "run", [&](const Statement& row) {
      auto made = translation.of(run_row(row));
      if (!made) throw Error("its machine is lost");
      writer.put(*made);
      ++runs;
    });
    try {
      copy_remarks(damaged_, fresh);
    } catch (const StoreError&) {
      lines_.emplace_back("some aliases, decisions or events");
    }
    transaction.commit();
    if (runs == 0) throw StoreError(fmt::format("no run could be read from {}", damaged_.path().string()));
    if (translation.lost() > 0)
      lines_.push_back(fmt::format("{} figures or facts of the other runs", translation.lost()));
    return lines_;
  }

 private:
  // Calls look(row) for each row of the table, whose ids count from 1 without gaps; those that are missing or that
  // `look` cannot read are lost.
  void each_id(const char* table, const char* columns, const char* what,
               const std::function<void(const Statement&)>& look) {
    constexpr std::int64_t max_gap = 10'000;
    std::int64_t last = 0;
    try {
      last = damaged_.integer(fmt::format("SELECT max(id) FROM {}", table).c_str());
    } catch (const StoreError&) {  // then until many are missing
    }
    std::optional<Statement> find;
    try {
      find.emplace(damaged_, fmt::format("SELECT {} FROM {} WHERE id = ?1", columns, table).c_str());
    } catch (const StoreError&) {
      lines_.push_back(fmt::format("every {}", what));
      return;
    }
    std::int64_t lost = 0, lost_in_a_row = 0;
    for (std::int64_t id = 1; id <= last || (last == 0 && lost_in_a_row < max_gap); ++id) {
      if (id > max_rows) break;
      bool found = false;
      try {
        if (find->with(id).row()) look(*find), found = true;
      } catch (const Error&) {
      }
      lost_in_a_row = found ? 0 : lost_in_a_row + 1;
      if (!found) ++lost;
    }
    if (last == 0) lost -= lost_in_a_row;
    if (lost > 0) lines_.push_back(fmt::format("{} of the table {}", lost, table));
  }

  static constexpr std::int64_t max_rows = 100'000'000;  // a damaged id may be anything
  Database& damaged_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> salvage(const fs::path& damaged, const fs::path& to) {
  std::error_code none;
  if (!fs::is_regular_file(damaged, none)) throw UsageError(fmt::format("{}: no such file", damaged.string()));
  if (fs::exists(to, none)) throw UsageError(fmt::format("{} exists: name a new file", to.string()));
  const TemporaryFolder folder(to.string() + ".salvage");
  const fs::path copy = folder.path() / "copy", fresh = folder.path() / "fresh";
  copy_bytes(damaged, copy);
  if (const fs::path log = damaged.string() + "-wal"; fs::exists(log, none)) copy_bytes(log, copy.string() + "-wal");
  std::optional<Database> made = ready_database(fresh, Database::Access::create);
  made->run("PRAGMA journal_mode = DELETE");
  if (!readable(copy)) {
    replace_first_page(copy, fresh);
    if (!readable(copy))
      throw StoreError(
          fmt::format("nothing could be read from {}: it is no history of schema {}, or its tables are gone",
                      damaged.string(), newest(migrations())));
  }
  std::vector<std::string> lost;
  {
    Database source(copy, Database::Access::write);
    lost = Salvage(source).into(*made);
  }
  made.reset();
  fs::rename(fresh, to);
  sync_folder(fs::absolute(to).parent_path());
  return lost;
}

}  // namespace assay::store
