// Stores of other schemas, damaged stores and full disks.
#include "harness/core/files.h"
#include "harness/history/store/schema.h"
#include "harness/history/store/store.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/store/history_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <random>

namespace assay::store {

namespace {

namespace fs = std::filesystem;
using test::night_run;
using testing::HasSubstr;

constexpr std::uintmax_t max_bytes = 1u << 30;

class DamagedStore : public testing::Test {
 protected:
  DamagedStore() : file_(folder_.path() / "h.db") {}

  // A store of `nights` nights, closed.
  void make(int nights) {
    Store store = Store::open(file_);
    for (int night = 0; night < nights; ++night) {
      RunData run = night_run(night, 1 + night);
      for (int i = 0; i < 40; ++i)
        run.records.push_back(test::timed(fmt::format("case/{}/{}", i, std::string(80, 'k')), 1 + i));
      store.add(run, {});
    }
  }
  std::string bytes() const { return read_whole(file_, max_bytes); }
  void write(const std::string& bytes) const { std::ofstream(file_, std::ios::binary) << bytes; }
  fs::path other(const char* name) const { return folder_.path() / name; }

  test::TemporaryFolder folder_;
  fs::path file_;
};

constexpr Migration added_column{2, "ALTER TABLE run ADD COLUMN colour TEXT"};

std::vector<Migration> with_one_more() {
  std::vector<Migration> steps(migrations().begin(), migrations().end());
  steps.push_back({newest(migrations()) + 1, added_column.sql});
  return steps;
}

TEST_F(DamagedStore, AnOlderSchemaMigratesAndACopyStays) {
  make(2);
  const std::vector<Migration> steps = with_one_more();
  {
    Database database(file_, Database::Access::write);
    migrate(database, steps);
    EXPECT_EQ(database.integer("PRAGMA user_version"), newest(steps));
    EXPECT_EQ(database.integer("SELECT count(*) FROM run WHERE colour IS NULL"), 2);
  }
  const fs::path copy = fmt::format("{}.schema-{}", file_.string(), newest(migrations()));
  EXPECT_EQ(Store::open_existing(copy).read().runs.size(), 2u);
}

TEST_F(DamagedStore, AFailedMigrationChangesNothing) {
  make(2);
  std::vector<Migration> steps = with_one_more();
  steps.push_back({steps.back().to + 1, "ALTER TABLE nonsense ADD COLUMN x"});
  {
    Database database(file_, Database::Access::write);
    EXPECT_THROW(migrate(database, steps), Error);
  }
  EXPECT_EQ(Store::open_existing(file_).read().runs.size(), 2u);
}

TEST_F(DamagedStore, ANewerSchemaIsRefusedAndNotTouched) {
  make(1);
  {
    Database database(file_, Database::Access::write);
    migrate(database, with_one_more());
    database.choose_journal();
  }
  const std::string before = bytes();
  for (const auto& open : {&Store::open, &Store::open_existing}) {
    try {
      open(file_);
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("newer assay"));
    }
  }
  EXPECT_EQ(bytes(), before);
}

TEST_F(DamagedStore, ANewerSchemaInTheLogIsNotTouchedEither) {
  make(1);
  Database newer(file_, Database::Access::write);  // keeps its changes in the log
  migrate(newer, with_one_more());
  const std::string before = bytes();
  EXPECT_THROW(Store::open(file_), UsageError);
  EXPECT_EQ(bytes(), before);
}

TEST_F(DamagedStore, NeverCrashesAndSalvageSavesTheRest) {
  make(8);
  const std::string whole = bytes();
  const fs::path saved = other("saved.db");
  std::mt19937_64 random(1);
  int damaged = 0, salvaged = 0;
  for (int trial = 0; trial < 150; ++trial) {
    std::string broken = whole;
    if (trial % 3 == 0) {
      broken.resize(random() % whole.size());
    } else {
      const std::size_t flips = trial % 3 == 1 ? 1 : 200;
      const std::size_t start = random() % whole.size();
      for (std::size_t i = 0; i < flips && start + i < broken.size(); ++i)
        broken[start + i] = static_cast<char>(random());
    }
    write(broken);
    fs::remove(saved);
    std::size_t read = 0;
    try {
      Store store = Store::open_existing(file_);
      read = store.read().runs.size();
      store.add(night_run(20, 1), {});
    } catch (const StoreError& error) {
      EXPECT_EQ(error.code(), ExitCode::broken);
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
      ++damaged;
    } catch (const UsageError&) {  // of another program, of a newer one
      ++damaged;
    }
    write(broken);
    try {
      salvage(file_, saved);
      const std::size_t kept = Store::open_existing(saved).read().runs.size();
      EXPECT_GE(kept, read);
      salvaged += kept > 0 ? 1 : 0;
    } catch (const StoreError&) {
    }
  }
  EXPECT_GT(damaged, 50);
  EXPECT_GT(salvaged, 100);
}

TEST_F(DamagedStore, SalvageReplacesTheFirstPage) {
  make(8);
  std::string broken = bytes();
  broken.replace(0, 4096, std::string(4096, '\x55'));
  write(broken);
  EXPECT_THROW(Store::open_existing(file_), StoreError);
  EXPECT_TRUE(salvage(file_, other("saved.db")).empty());
  Contents contents = Store::open_existing(other("saved.db")).read();
  EXPECT_EQ(contents.runs.size(), 8u);
  EXPECT_EQ(contents.series.size(), 42u);
  EXPECT_EQ(contents.series[0].points.size(), 8u);
  EXPECT_THROW(salvage(file_, other("saved.db")), UsageError) << "replaces no file";
}

TEST_F(DamagedStore, SalvageOfACompactedStoreReplacesTheFirstPageToo) {
  make(20);
  {
    Store store = Store::open_existing(file_);
    EXPECT_GT(store.compact(store.last_night().value()), 0u);
  }
  std::string broken = bytes();
  broken.replace(0, 4096, std::string(4096, '\x55'));
  write(broken);
  EXPECT_TRUE(salvage(file_, other("saved.db")).empty());
  EXPECT_EQ(Store::open_existing(other("saved.db")).read().runs.size(), 20u);
}

TEST_F(DamagedStore, SalvageDoesNotCountUpToADamagedId) {
  make(3);
  {
    Database database(file_, Database::Access::write);
    database.run("UPDATE facts SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM facts)");
  }
  const auto lost = salvage(file_, other("saved.db"));
  EXPECT_FALSE(lost.empty());
  EXPECT_EQ(Store::open_existing(other("saved.db")).read().runs.size(), 3u);
}

TEST_F(DamagedStore, AFileIsReadWithoutALockUntilItChanges) {
  make(1);
  Database reading(file_, Database::Access::read);
  EXPECT_EQ(reading.integer("SELECT count(*) FROM run"), 1);
  EXPECT_NO_THROW(reading.check_unchanged());
  EXPECT_THROW(reading.run("DELETE FROM run"), UsageError);
  EXPECT_FALSE(fs::exists(file_.string() + "-wal")) << "nothing is made beside it";
  make(2);
  EXPECT_THROW(reading.check_unchanged(), StoreError);
}

TEST_F(DamagedStore, AChangedFigureIsFound) {
  make(1);
  {
    Database database(file_, Database::Access::write);
    database.run("UPDATE run SET points = CAST(substr(points, 1, 5) || x'01' || substr(points, 7) AS BLOB)");
  }
  EXPECT_THROW(Store::open_existing(file_).read(), StoreError);
}

TEST_F(DamagedStore, AFullDiskLosesNothing) {
  make(3);
  Store store = Store::open_existing(file_);
  RunData large = night_run(9, 1);
  for (int i = 0; i < 20'000; ++i) large.records.push_back(test::timed(fmt::format("case/{}", i), 1 + i));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full{1 << 20, limit.rlim_max};  // no file may be larger: as if the disk were full
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  EXPECT_THROW(store.add(large, {}), StoreError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(store.read().runs.size(), 3u);
  EXPECT_TRUE(store.add(large, {}).fresh);
}

}  // namespace

}  // namespace assay::store
