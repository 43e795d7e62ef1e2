// The run directory: what survives a kill, a full disk, a second supervisor and foreign files.
#include "harness/record/run_dir.h"
#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunDir : public testing::Test {
 protected:
  static Record record(const std::string& key, Status status = Status::ok, int attempt = 1) {
    Record made;
    made.key = key;
    made.status = status;
    made.attempt = attempt;
    return made;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(dir_)) all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
  void add_text(const std::string& text) const { std::ofstream(dir_ / "records.jsonl", std::ios::app) << text; }

  const Json run_ = {{"schema", record_schema}, {"labels", {{"a", "b"}}}};
  test::TemporaryFolder folder_;
  const fs::path dir_ = folder_.path() / "run";
};

TEST_F(RunDir, WorkersMayWriteOnlyBelowMllog) {
  RunWriter writer = RunWriter::create(dir_, run_);
  writer.write_file("mllog/a.log", "one\n", true);
  writer.write_file("mllog/a.log", "two\n", false);
  writer.write_file("mllog/b.log", "old\n", true);
  writer.write_file("mllog/b.log", "new\n", true);
  const auto text = [&](const char* name) {
    std::ifstream file(dir_ / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(text("mllog/a.log"), "one\ntwo\n");
  EXPECT_EQ(text("mllog/b.log"), "new\n");
  for (const char* name :
       {"", "a.log", "mllog/", "mllog/../run.json", "mllog/..", "mllog/x/y", "/tmp/x", "records.jsonl"})
    EXPECT_THROW(writer.write_file(name, "x", true), Error) << name;
}

TEST_F(RunDir, HoldsNoSecretOfWhatIsWrittenOrWasBefore) {
  const std::string secret = "hunter2";
  {
    Json run = run_;
    run["argv"] = {"assay", "run", "--token", secret};
    RunWriter writer = RunWriter::create(dir_, run);
    Record one = record("x/password=" + secret);
    one.labels["api_key"] = secret;
    one.log = "Authorization: Bearer " + secret;
    one.samples.values.assign(300, 1.0);  // goes to series/
    writer.append(one);
    writer.write_file("mllog/a.log", "password=" + secret, true);
  }
  for (const auto& entry : fs::recursive_directory_iterator(dir_)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), testing::Not(HasSubstr(secret)));
  }
  add_text(R"({"schema":2,"key":"y","labels":{"api_key":"hunter2"},"log":"token is kept"})"
           "\n");
  const RunData data = read_run(dir_);
  ASSERT_EQ(data.records.size(), 2u);
  EXPECT_EQ(data.records[0].log, "Authorization: Bearer [masked]");
  EXPECT_EQ(data.records[1].labels.at("api_key"), "[masked]");
  EXPECT_EQ(data.records[1].log, "token is kept");
  EXPECT_EQ(all_samples(data, data.records[0]).size(), 300u);
}

TEST_F(RunDir, KeepsAllRecordsAndUsesTheLastAttempt) {
  {
    RunWriter writer = RunWriter::create(dir_, run_);
    writer.append(record("x", Status::error));
    writer.append(record("y"));
    writer.append(record("x", Status::ok, 2));
    writer.update_run({{"schema", 1}, {"finished", "now"}});
  }
  const RunData data = read_run(dir_);
  EXPECT_EQ(data.run["finished"], "now");
  EXPECT_EQ(data.records.size(), 3u);
  const auto last = data.final_records();
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].key, "x");
  EXPECT_EQ(last[0].attempt, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{".lock", "records.jsonl", "run.json"}));
}

TEST_F(RunDir, LongSampleListsAreStoredAsSeries) {
  {
    RunWriter writer = RunWriter::create(dir_, run_);
    Record longer = record("long"), shorter = record("short");
    for (int i = 0; i < 201; ++i) longer.samples.values.push_back(i), longer.samples.at.push_back(i * 2);
    shorter.samples.values.assign(200, 0.5);
    writer.append(longer);
    writer.append(shorter);
  }
  const RunData data = read_run(dir_);
  ASSERT_TRUE(data.records[0].samples.series.has_value());
  EXPECT_TRUE(data.records[0].samples.values.empty());
  EXPECT_EQ(data.records[0].samples.count, 201);
  EXPECT_EQ(all_samples(data, data.records[0]).size(), 201u);
  EXPECT_EQ(all_samples(data, data.records[0])[200], 200);
  EXPECT_FALSE(data.records[1].samples.series.has_value());
  EXPECT_EQ(all_samples(data, data.records[1]).size(), 200u);
}

TEST_F(RunDir, SeriesOutsideTheRunAreRefused) {
  { RunWriter::create(dir_, run_); }
  const RunData data = read_run(dir_);
  for (const char* path : {"/etc/passwd", "../x", "series/../../x"}) {
    Record hostile = record("h");
    hostile.samples.series = path;
    EXPECT_THROW((void)all_samples(data, hostile), UsageError) << path;
  }
}

TEST_F(RunDir, ATornLastLineIsRemovedOnResume) {
  { RunWriter::create(dir_, run_).append(record("a")); }
  add_text(R"({"schema":1,"key":"to)");
  EXPECT_EQ(read_run(dir_).problems.size(), 1u);
  { RunWriter::resume(dir_).append(record("b")); }
  const RunData data = read_run(dir_);
  EXPECT_TRUE(data.problems.empty());
  ASSERT_EQ(data.records.size(), 2u);
  EXPECT_EQ(data.records[1].key, "b");
}

TEST_F(RunDir, ACompleteLastLineWithoutANewlineIsKept) {
  { RunWriter::create(dir_, run_); }
  add_text(R"({"schema":1,"key":"a"})");
  { RunWriter::resume(dir_).append(record("b")); }
  EXPECT_EQ(read_run(dir_).records.size(), 2u);
}

TEST_F(RunDir, BadLinesAreReportedAndTheRestIsUsed) {
  { RunWriter::create(dir_, run_).append(record("a")); }
  add_text("nonsense\n\n{\"schema\":9}\n{\"schema\":1,\"key\":3}\n" + std::string("\0\xff\n", 3) +
           "{\"schema\":1,\"key\":\"z\"}\n");
  const RunData data = read_run(dir_);
  EXPECT_EQ(data.records.size(), 2u);
  EXPECT_EQ(data.problems,
            (std::vector<std::string>{"records.jsonl line 2: not JSON",
                                      "records.jsonl line 4: schema 9 is not known: this build reads schemas 1 and 2",
                                      "records.jsonl line 5: key: not a string", "records.jsonl line 6: not JSON"}));
}

TEST_F(RunDir, UnknownSchemasAndForeignFoldersAreRefused) {
  fs::create_directories(dir_);
  EXPECT_THAT(test::refusal([&] { (void)read_run(dir_); }), HasSubstr("holds no run"));
  EXPECT_THAT(test::refusal([&] { (void)read_run(dir_ / "none"); }), HasSubstr("no such directory"));
  EXPECT_THAT(test::refusal([&] { (void)RunWriter::resume(dir_); }), HasSubstr("nothing to resume"));
  std::ofstream(dir_ / "run.json") << R"({"schema":3})";
  EXPECT_THAT(test::refusal([&] { (void)read_run(dir_); }), HasSubstr("schema 3 is not known"));
  EXPECT_THAT(test::refusal([&] { (void)RunWriter::create(dir_, run_); }), HasSubstr("--resume"));
  std::ofstream(dir_ / "run.json") << R"({})";
  EXPECT_THAT(test::refusal([&] { (void)read_run(dir_); }), HasSubstr("no schema"));
  fs::remove(dir_ / "run.json");
  std::ofstream(dir_ / "mine.txt") << "x";
  EXPECT_THAT(test::refusal([&] { (void)RunWriter::create(dir_, run_); }), HasSubstr("not empty"));
  EXPECT_FALSE(fs::exists(dir_ / ".lock"));
  EXPECT_THAT(test::refusal([&] { (void)RunWriter::create(dir_ / "mine.txt", run_); }), HasSubstr("not a directory"));
}

TEST_F(RunDir, LeftoversOfAKilledCreateAreReplaced) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / ".lock") << "";
  std::ofstream(dir_ / "records.jsonl") << "";
  std::ofstream(dir_ / ".assay-0123456789abcdef.tmp") << "{\"sche";
  (void)RunWriter::create(dir_, run_);
  EXPECT_TRUE(read_run(dir_).problems.empty());
  (void)RunWriter::resume(dir_);
  EXPECT_EQ(names(), (std::vector<std::string>{".lock", "records.jsonl", "run.json"}));
}

TEST_F(RunDir, WhatCannotBeReadIsNoRunWithoutRecords) {
  { RunWriter::create(dir_, run_).append(record("a")); }
  const fs::path records = dir_ / "records.jsonl";
  fs::remove(records);
  EXPECT_THAT(test::refusal([&] { (void)read_run(dir_); }), HasSubstr("no records.jsonl"));
  const auto why = [&] { return test::refusal<Error>([&] { (void)read_runs({dir_}); }); };
  fs::create_directory(records);
  EXPECT_THAT(why(), AllOf(HasSubstr("records.jsonl"), HasSubstr("a folder")));
  fs::remove(records);
  fs::create_symlink("/dev/zero", records);
  EXPECT_THAT(why(), AllOf(HasSubstr("records.jsonl"), HasSubstr("a device")));
  fs::remove(records);
  ASSERT_EQ(mkfifo(records.c_str(), 0600), 0);
  EXPECT_THAT(why(), AllOf(HasSubstr("records.jsonl"), HasSubstr("a FIFO")));
  fs::remove(records);
  std::ofstream(records) << "{}\n";
  fs::resize_file(records, std::uintmax_t{1} << 36);
  EXPECT_THAT(why(), AllOf(HasSubstr("records.jsonl"), HasSubstr("line 2 is longer than")));
  fs::remove(dir_ / "run.json");
  fs::create_directory(dir_ / "run.json");
  EXPECT_THAT(why(), AllOf(HasSubstr("run.json"), HasSubstr("a folder")));
}

TEST_F(RunDir, ASeriesThatIsGoneIsNotOneThatCannotBeRead) {
  Record longer = record("long");
  longer.samples.values.assign(300, 1.0);
  { RunWriter::create(dir_, run_).append(longer); }
  const RunData data = read_run(dir_);
  const fs::path file = dir_ / *data.records[0].samples.series;
  fs::remove(file);
  EXPECT_THROW((void)all_samples(data, data.records[0]), MissingSeries);
  fs::create_directory(file);
  try {
    (void)all_samples(data, data.records[0]);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const MissingSeries&) {
    ADD_FAILURE() << "it is not missing";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a folder"));
  }
}

TEST_F(RunDir, LinksInTheDirectoryAreNotFollowed) {
  const fs::path victim = folder_.path() / "victim";
  std::ofstream(victim) << "precious";
  fs::create_directories(dir_);
  fs::create_symlink(victim, dir_ / ".lock");
  EXPECT_NE(test::refusal([&] { (void)RunWriter::create(dir_, run_); }), "");
  fs::remove(dir_ / ".lock");
  RunWriter writer = RunWriter::create(dir_, run_);
  fs::create_directory(folder_.path() / "elsewhere");
  fs::create_directory_symlink(folder_.path() / "elsewhere", dir_ / "mllog");
  EXPECT_THROW(writer.write_file("mllog/a.log", "x", true), RunDirError);
  fs::remove(dir_ / "mllog");
  fs::create_directory(dir_ / "mllog");
  fs::create_symlink(victim, dir_ / "mllog/a.log");
  EXPECT_THROW(writer.write_file("mllog/a.log", "x", true), RunDirError);
  fs::create_directory_symlink(folder_.path() / "elsewhere", dir_ / "series");
  Record longer = record("long");
  longer.samples.values.assign(300, 1.0);
  EXPECT_THROW(writer.append(longer), RunDirError);
  std::ifstream file(victim);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious");
  EXPECT_TRUE(fs::is_empty(folder_.path() / "elsewhere"));
}

TEST_F(RunDir, ASecondSupervisorIsRefusedWithThePid) {
  const RunWriter first = RunWriter::create(dir_, run_);
  const std::string error = test::refusal([&] { (void)RunWriter::resume(dir_); });
  EXPECT_THAT(error, HasSubstr("in use by another assay run (process " + std::to_string(getpid()) + " on "));
}

// Runs `body` in a child whose files may not grow beyond `bytes`.
template <typename F>
int with_full_disk(rlim_t bytes, F&& body) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST_F(RunDir, AFullDiskIsReportedAndLeavesWholeLines) {
  const int rc = with_full_disk(4096, [&] {
    RunWriter writer = RunWriter::create(dir_, run_);
    for (int i = 0; i < 1000; ++i) {
      try {
        writer.append(record("case/" + std::to_string(i)));
      } catch (const Error& error) {
        return std::string(error.what()).find("cannot write") != std::string::npos ? i : 99;
      }
    }
    return 98;
  });
  EXPECT_GT(rc, 1);
  EXPECT_LT(rc, 50);
  EXPECT_EQ(read_run(dir_).records.size(), static_cast<std::size_t>(rc));
  EXPECT_TRUE(read_run(dir_).problems.empty());
  { RunWriter::resume(dir_).append(record("last")); }
  EXPECT_EQ(read_run(dir_).records.back().key, "last");
}

TEST_F(RunDir, AFullDiskAtTheStartLeavesNothing) {
  EXPECT_EQ(with_full_disk(0,
                           [&] {
                             return test::refusal<Error>([&] { (void)RunWriter::create(dir_, run_); }).find("cannot") !=
                                            std::string::npos
                                        ? 7
                                        : 8;
                           }),
            7);
  EXPECT_FALSE(fs::exists(dir_));
}

TEST_F(RunDir, ARunWrittenAtOnceIsWholeOrNotThere) {
  Record longer = record("long");
  longer.samples.values.assign(300, 1.0);
  const auto write = [&] {
    write_run(dir_, [&](const std::function<void(Record)>& add) {
      add(longer);
      add(record(std::string(5000, 'k')));
      return run_;
    });
  };
  for (const rlim_t bytes : {0, 3000})
    EXPECT_EQ(with_full_disk(bytes, [&] { return test::refusal<RunDirError>(write).empty() ? 8 : 7; }), 7);
  EXPECT_FALSE(fs::exists(dir_));
  write();
  EXPECT_EQ(read_run(dir_).records.size(), 2u);
}

TEST(RunReader, ManyRunsKeepTheirOrderAndOnlyWhatReportsRead) {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const fs::path& root = folder.path();
  std::vector<fs::path> dirs;
  for (int i = 0; i < 9; ++i) {
    dirs.push_back(root / std::to_string(i));
    fs::create_directory(dirs.back());
    std::ofstream(dirs.back() / "run.json")
        << R"({"schema":1,"plan":{"name":"p","cases":[{"key":"a","ranks":2,"seed":0,"params":{"x":1}}]}})";
    std::ofstream(dirs.back() / "records.jsonl")
        << R"({"schema":1,"key":"k)" << i
        << R"(","params":{"m":1},"log":"x","telemetry":{"power":{"unit":"W","at":[0],)"
        << R"("values":[1]},"steal":{"unit":"1","at":[0],"values":[1]}}})"
           "\n{broken\n";
  }
  const std::vector<RunData> runs = read_runs(dirs);
  ASSERT_EQ(runs.size(), 9u);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ASSERT_EQ(runs[i].records.size(), 1u);
    EXPECT_EQ(runs[i].records[0].key, "k" + std::to_string(i));
    EXPECT_EQ(runs[i].problems, (std::vector<std::string>{"records.jsonl line 2: not JSON"}));
    EXPECT_EQ(runs[i].records[0].telemetry.size(), 1u);
    EXPECT_TRUE(runs[i].records[0].log.empty());
    EXPECT_EQ(runs[i].run["plan"]["cases"][0].dump(), R"({"key":"a","ranks":2,"seed":0})");
  }
  EXPECT_EQ(read_run(dirs[0]).records[0].telemetry.size(), 2u);
  EXPECT_THROW((void)read_runs({dirs[0], root / "none"}), UsageError);
}

}  // namespace
}  // namespace assay
