// The tables of the store, and how older files get them.
#pragma once

#include "harness/history/store/database.h"

#include <filesystem>
#include <span>

namespace assay::store {

// Makes a store of schema `to` from one of the schema before; the first makes an empty file a store. A step that has
// been released never changes.
struct Migration {
  int to = 0;
  const char* sql = nullptr;
};

std::span<const Migration> migrations();
inline int newest(std::span<const Migration> steps) { return steps.back().to; }

// Reads the header of a file, without opening the file as a database, and refuses it if SQLite would, if another
// program made it, or if these steps do not make its schema. A file that is absent or empty passes.
void check_header(const std::filesystem::path& file, std::span<const Migration> steps = migrations());

// Takes the steps that the store lacks, all in one transaction. Unless it was empty, a copy named FILE.schema-N stays.
// Throws StoreError if its tables are not those of its schema.
void migrate(Database& database, std::span<const Migration> steps = migrations());

// The file as a store of the newest schema, with the journal that suits its file system.
Database ready_database(const std::filesystem::path& file, Database::Access access);

}  // namespace assay::store
