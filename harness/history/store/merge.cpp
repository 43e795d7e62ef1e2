// What another store has and this one has not.
#include "harness/history/store/schema.h"
#include "harness/history/store/state.h"
#include "harness/history/store/tables.h"
#include "harness/history/store/writer.h"

#include <fmt/format.h>

namespace assay::store {

namespace fs = std::filesystem;

std::size_t Store::merge(const fs::path& other) {
  std::error_code none;
  if (!fs::exists(other, none)) throw UsageError(fmt::format("{}: no such history", other.string()));
  if (fs::equivalent(other, state_->database.path(), none)) return 0;
  Database from = ready_database(other, access_to(other));
  const Transaction reading(from, Transaction::Kind::read);
  const Tables tables = tables_of(from, true);
  Transaction transaction(state_->database, Transaction::Kind::write);
  Writer writer(state_->database);
  Translation translation(tables, writer);
  std::size_t taken = 0;
  each_run(from, [&](const RunRow& row) {
    const RunRow known = writer.version_of(row.name);
    if (known.id != 0 && row.version() <= known.version()) return;
    auto made = translation.of(row);
    if (!made || translation.lost() > 0)
      throw StoreError(damaged_text(other, fmt::format("run {} refers to rows that are missing", row.id)));
    made->id = known.id;
    writer.put(*made);
    ++taken;
  });
  copy_remarks(from, state_->database);
  from.check_unchanged();
  if (taken == 0) state_->database.run("UPDATE meta SET value = value + 1 WHERE name = 'revision'");  // aliases
  transaction.commit();
  return taken;
}

}  // namespace assay::store
