// Opening a store.
#pragma once

#include "harness/history/store/database.h"

namespace assay::store {

// The file as a store of the newest schema, with the journal that suits its file system.
Database ready_database(const std::filesystem::path& file, Database::Access access);

}  // namespace assay::store
