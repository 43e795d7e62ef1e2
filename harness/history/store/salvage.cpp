// What can still be read of a damaged store. Rows are looked up one by one, so that a damaged page costs only what is
// on it; where the first page is damaged, that of an empty store takes its place: all stores have their tables at the
// same pages, because nothing is ever dropped or vacuumed whole.
#include "harness/core/files.h"
#include "harness/core/live_line.h"
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
  explicit Salvage(Database& damaged)
      : damaged_(damaged), max_id_(static_cast<std::int64_t>(fs::file_size(damaged.path()) / min_row_bytes)) {}

  // `name` is the damaged history's own; what is read is a copy of it.
  std::vector<std::string> into(Database& fresh, const std::string& name) {
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
    if (runs == 0) throw StoreError("no run could be read from " + name);
    if (translation.lost() > 0)
      lines_.push_back(fmt::format("{} figures or facts of the other runs", translation.lost()));
    return lines_;
  }

 private:
  // Calls look(row) for each row of the table, whose ids count from 1 without gaps; those that are missing or that
  // `look` cannot read are lost. Ids are tried one by one only where a damaged page hides which is the next.
  void each_id(const char* table, const char* columns, const char* what,
               const std::function<void(const Statement&)>& look) {
    std::optional<Statement> find, beyond;
    try {
      find.emplace(damaged_, fmt::format("SELECT {} FROM {} WHERE id = ?1", columns, table).c_str());
      beyond.emplace(damaged_, fmt::format("SELECT min(id) FROM {} WHERE id > ?1", table).c_str());
    } catch (const StoreError&) {
      lines_.push_back(fmt::format("every {}", what));
      return;
    }
    constexpr std::int64_t max_hidden = 1'000'000;
    std::int64_t lost = 0, hidden = 0, id = 1;  // `hidden`: those that are lost after the last row that was found
    while (id > 0) {
      show_place(table, id);
      try {
        if (find->with(id).row()) {
          look(*find);
          hidden = 0;
          if (id > max_id_) break;
          ++id;
          continue;
        }
        std::int64_t next = beyond->with(id).row() && !beyond->null(0) ? beyond->integer(0) : 0;
        if (next <= id) next = 0;  // none, or rows out of order
        // An id that no store of this size can have is damaged, and its row the only one that is lost for sure.
        lost += next == 0 ? 0 : next > max_id_ ? 1 : next - id;
        hidden = 0, id = next;
      } catch (const Error&) {
        ++lost, ++hidden, ++id;
        if (id > max_id_ || hidden >= max_hidden) break;
      }
    }
    lost -= hidden;
    if (hidden > 0) lines_.push_back(fmt::format("what the table {} has after row {}", table, id - hidden - 1));
    if (lost > 0) lines_.push_back(fmt::format("{} of the table {}", lost, table));
  }

  void show_place(const char* table, std::int64_t id) {
    constexpr std::int64_t steps = 1000;
    if (++tried_ % steps == 0) line_.draw(fmt::format("history store salvage: row {} of the table {}", id, table));
  }

  static constexpr std::uintmax_t min_row_bytes = 32;  // with its place in an index
  Database& damaged_;
  std::int64_t max_id_, tried_ = 0;
  LiveLine line_;
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
    lost = Salvage(source).into(*made, damaged.string());
  }
  made.reset();
  fs::rename(fresh, to);
  sync_folder(fs::absolute(to).parent_path());
  return lost;
}

}  // namespace assay::store
