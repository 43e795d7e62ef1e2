// Figures of other tools written as run directories: one, several, or none.
#include "reports/exchange/write_runs.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::report {
namespace {

namespace fs = std::filesystem;

struct At {
  std::string time;
  Status status = Status::ok;
};

ForeignFile file_of(const std::vector<At>& results) {
  FigureCollector figures;
  for (const At& one : results) {
    ForeignContext about;
    about.time = one.time, about.machine = "m";
    figures.measured(about);
    ForeignFigure figure;
    figure.name = "sort", figure.metric = "time", figure.unit = "s", figure.better = Better::lower;
    figure.status = one.status;
    if (one.status != Status::ok) figure.reason = "wrong";
    figures.add(std::move(figure), 1.0);
  }
  return figures.take();
}

struct Out : test::TemporaryFolder {
  std::size_t write(const std::vector<At>& results) {
    std::vector<ForeignFile> contents;
    contents.push_back(file_of(results));
    return write_runs(std::move(contents), {"f.json"}, "gbench", out,
                      [this](const std::string& line) { lines.push_back(line); });
  }
  fs::path out = path() / "out";
  std::vector<std::string> lines;
};

TEST(WriteRuns, OneRunIsTheDirectoryItself) {
  Out out;
  EXPECT_EQ(out.write({At{"2026-01-31T12:00:00Z"}}), 1u);
  EXPECT_TRUE(fs::exists(out.out / "records.jsonl"));
  EXPECT_EQ(out.lines, (std::vector<std::string>{out.out.string() + ": 1 cases of 2026-01-31T12:00:00Z\n"}));
}

TEST(WriteRuns, SeveralTimesAreNumbered) {
  Out out;
  EXPECT_EQ(out.write({At{"2026-01-31T12:00:00Z"}, At{"2026-02-01T12:00:00Z", Status::failed}}), 2u);
  EXPECT_TRUE(fs::exists(out.out / "000001" / "records.jsonl"));
  EXPECT_TRUE(fs::exists(out.out / "000002" / "records.jsonl"));
  EXPECT_THAT(out.lines.at(1), testing::HasSubstr(", 1 not ok: 1 failed; the first "));
}

TEST(WriteRuns, NothingLeavesNothing) {
  Out out;
  EXPECT_EQ(out.write({}), 0u);
  EXPECT_FALSE(fs::exists(out.out));
  EXPECT_TRUE(out.lines.empty());
}

// The second of two runs is in the way of a file: the first is removed again, and the file stays.
TEST(WriteRuns, AllOrNone) {
  Out out;
  fs::create_directory(out.out);
  replace_file(out.out / "000002", "mine");
  EXPECT_THROW(out.write({At{"2026-01-31T12:00:00Z"}, At{"2026-02-01T12:00:00Z"}}), Error);
  EXPECT_FALSE(fs::exists(out.out / "000001"));
  EXPECT_TRUE(fs::exists(out.out / "000002"));
}

TEST(WriteRuns, CountsWhatIsNotOk) {
  std::vector<Record> records = {test::record_of("a", {}), test::record_of("b", {}), test::record_of("c", {})};
  const auto text_of = [&] {
    NotOk not_ok;
    for (const Record& record : records) not_ok.add(record);
    return not_ok.text();
  };
  EXPECT_EQ(text_of(), "");
  records[1].status = Status::error;
  records[1].reason = "it broke";
  records[2].status = Status::failed;
  EXPECT_EQ(text_of(), ", 2 not ok: 1 failed, 1 error; the first b: it broke");
}

}  // namespace
}  // namespace assay::report
