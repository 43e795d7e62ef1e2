// Runs on disk go into a store.
#include "harness/history/add.h"

#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/store/history_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace assay::history {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class AddRuns : public testing::Test {
 protected:
  std::string write(const std::string& name, int night) {
    const RunData run = assay::test::night_run(night, 0.5);
    const fs::path dir = folder_.path() / name;
    fs::create_directories(dir);
    std::ofstream(dir / "run.json") << run.run.dump();
    std::ofstream records(dir / "records.jsonl");
    for (const Record& record : run.records) records << dump_line(record.to_json()) << '\n';
    return dir.string();
  }
  ExitCode add(const std::vector<std::string>& given) {
    store::Store store = store::Store::open(folder_.path() / "h.db");
    results.clear(), remarks.clear();
    return add_runs(store, run_directories(given), {},
                    {.result = [&](const std::string& line) { results.push_back(line); },
                     .remark = [&](const std::string& line) { remarks.push_back(line); }});
  }

  assay::test::TemporaryFolder folder_;
  std::vector<std::string> results, remarks;
};

TEST_F(AddRuns, DirectoriesAndFoldersOfThemCountOnce) {
  const std::string second = write("nights/b", 1), first = write("nights/a", 0);
  const RunDirectories runs = run_directories({second, (folder_.path() / "nights").string(), second + "/"});
  EXPECT_THAT(runs.found, ElementsAre(second, first));
  EXPECT_TRUE(runs.unreadable.empty());
  fs::create_directory(folder_.path() / "empty");
  EXPECT_THAT(assay::test::refusal([&] { run_directories({(folder_.path() / "empty").string()}); }),
              HasSubstr("holds no run"));
  EXPECT_THAT(assay::test::refusal([&] { run_directories({"/gone"}); }), HasSubstr("no such directory"));
}

TEST_F(AddRuns, ARunIsAddedOnce) {
  const std::string dir = write("a", 0);
  EXPECT_EQ(add({dir}), ExitCode::ok);
  EXPECT_THAT(results, ElementsAre(dir + ": added, 2 figures"));
  EXPECT_EQ(add({dir}), ExitCode::ok);
  EXPECT_THAT(results, ElementsAre(dir + ": already there"));
}

TEST_F(AddRuns, OneThatCannotBeReadKeepsNoOtherOut) {
  const std::string good = write("a", 0), bad = write("b", 1), also = write("c", 2);
  std::ofstream(fs::path(bad) / "run.json") << "no json";
  EXPECT_NE(add({folder_.path().string()}), ExitCode::ok);
  EXPECT_THAT(results, ElementsAre(HasSubstr(good + ": added"), HasSubstr(also + ": added")));
  EXPECT_THAT(remarks, ElementsAre(HasSubstr(bad)));
}

}  // namespace
}  // namespace assay::history
