// What a Store holds.
#pragma once

#include "harness/store/database.h"
#include "harness/store/store.h"

namespace assay::store {

struct Store::State {
  explicit State(Database opened) : database(std::move(opened)) {}

  Database database;
  // Of the last read(): what an analysis that is cached afterwards has seen.
  std::int64_t changes_read = -1;
  Night last_night_read = 0;
};

}  // namespace assay::store
