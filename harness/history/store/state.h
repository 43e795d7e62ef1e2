// The members of a Store.
#pragma once

#include "harness/history/store/database.h"
#include "harness/history/store/store.h"

namespace assay::store {

struct Store::State {
  explicit State(Database opened) : database(std::move(opened)) {}

  Database database;
  // The count of changes at the last read(), which an analysis cached afterwards has seen.
  std::int64_t changes_read = -1;
  Night last_night_read = 0;
};

}  // namespace assay::store
