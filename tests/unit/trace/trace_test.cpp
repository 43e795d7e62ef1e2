// Spans: the timeline's entries nest and keep their data; the listener only gets phases; the Chrome trace is valid JSON
// for any names.
#include "harness/trace/trace.h"

#include "harness/core/error.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>

#include <unistd.h>

namespace assay::trace {
namespace {

std::vector<Entry> named(const std::vector<Entry>& entries, const std::string& name) {
  std::vector<Entry> found;
  for (const auto& entry : entries)
    if (entry.name == name) found.push_back(entry);
  return found;
}

// The timeline is per process, so every test starts from an empty one.
class Timeline : public testing::Test {
 protected:
  void SetUp() override {
    start_timeline();
    drain_timeline();
  }
};

TEST(TimelineOff, KeepsNothing) {
  if (timeline_on()) GTEST_SKIP() << "another test of this process has enabled it";
  { Span span(Category::run, "unseen"); }
  EXPECT_TRUE(named(drain_timeline(), "unseen").empty());
}

TEST_F(Timeline, EntriesNestAndCarryCategoryAndPayload) {
  {
    Span outer(Category::case_, "outer", 7);
    Span inner(Category::phase, "inner", -1);
  }
  const auto entries = drain_timeline();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "outer");
  EXPECT_EQ(entries[0].category, Category::case_);
  EXPECT_EQ(entries[0].payload, 7);
  EXPECT_EQ(entries[1].name, "inner");
  EXPECT_EQ(entries[1].payload, -1);
  EXPECT_GE(entries[1].start_ns, entries[0].start_ns);
  EXPECT_LE(entries[1].start_ns + entries[1].duration_ns, entries[0].start_ns + entries[0].duration_ns);
  EXPECT_TRUE(drain_timeline().empty());
}

TEST_F(Timeline, StartIsTheWallClock) {
  using namespace std::chrono;
  const auto before = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  { Span span(Category::sample, "now"); }
  const auto after = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  const auto entries = drain_timeline();
  ASSERT_EQ(entries.size(), 1u);
  // The clocks' offset was read by two calls, so allow for a pause between them.
  EXPECT_GT(entries[0].start_ns, before - 1'000'000'000);
  EXPECT_LT(entries[0].start_ns, after + 1'000'000'000);
}

TEST_F(Timeline, ClosesWhenAnExceptionPasses) {
  try {
    Span span(Category::case_, "thrown through");
    throw std::runtime_error("case failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(named(drain_timeline(), "thrown through").size(), 1u);
}

TEST_F(Timeline, NamesAreCopied) {
  {
    std::string name = "a name that is too long for the small-string buffer";
    { Span span(Category::case_, name.c_str()); }
    name.assign(name.size(), 'x');
  }
  EXPECT_EQ(named(drain_timeline(), "a name that is too long for the small-string buffer").size(), 1u);
}

TEST_F(Timeline, ThreadsHaveTracksThatOutliveThem) {
  { Span span(Category::run, "here"); }
  std::thread([] { Span span(Category::data, "there"); }).join();
  const auto entries = drain_timeline();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_NE(named(entries, "here").at(0).thread, named(entries, "there").at(0).thread);
}

TEST_F(Timeline, BoundsAThreadsEntriesAndReportsDrops) {
  const auto extra = std::size_t{10};
  for (std::size_t i = 0; i < max_entries_per_thread + extra; ++i) Span span(Category::sample, "s");
  const auto entries = drain_timeline();
  EXPECT_EQ(entries.size(), max_entries_per_thread + 1);
  const auto dropped = named(entries, "(dropped)");
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].payload, static_cast<std::int64_t>(extra));
}

TEST(Listener, GetsPhasesAndTheEnclosingOneAgain) {
  std::vector<std::string> heard;
  on_phase([&](std::string_view name) { heard.emplace_back(name); });
  {
    Span run(Category::run, "run");
    Span measure(Category::phase, "measure");
    { Span sample(Category::sample, "sample"); }
    { Span warm_up(Category::phase, "warm-up"); }
  }
  on_phase({});
  { Span late(Category::phase, "late"); }
  EXPECT_EQ(heard, (std::vector<std::string>{"measure", "warm-up", "measure"}));
}

TEST(Listener, ThatThrowsLeavesNothingOpen) {
  on_phase([](std::string_view) { throw std::runtime_error("channel closed"); });
  EXPECT_THROW(Span(Category::phase, "setup"), std::runtime_error);
  std::vector<std::string> heard;
  on_phase([&](std::string_view name) { heard.emplace_back(name); });
  { Span next(Category::phase, "verify"); }
  on_phase({});
  EXPECT_EQ(heard, std::vector<std::string>{"verify"});
}

class ChromeTrace : public testing::Test {
 protected:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("assay_trace_" + std::to_string(::getpid()) + ".json")).string();
  void TearDown() override { std::filesystem::remove(path_); }

  nlohmann::json written(const std::vector<RankTimeline>& ranks) {
    write_chrome_trace(path_, ranks);
    std::ifstream file(path_);
    return nlohmann::json::parse(file);
  }
};

TEST_F(ChromeTrace, HasOneProcessPerRankAndExactNanoseconds) {
  constexpr std::int64_t epoch = 1'790'000'000'123'456'789;
  const auto trace = written({{0, "node-a", {{"run", Category::run, 0, epoch, 5'000'001, 0}}},
                              {1, "node-b", {{"case", Category::case_, 42, epoch + 1'001, 7, 1}}}});
  EXPECT_EQ(trace["otherData"]["start_ns"], std::to_string(epoch));
  std::map<int, std::string> processes;
  std::vector<nlohmann::json> complete;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "process_name") processes[event["pid"]] = event["args"]["name"];
    if (event["ph"] == "X") complete.push_back(event);
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "rank 0 @node-a"}, {1, "rank 1 @node-b"}}));
  ASSERT_EQ(complete.size(), 2u);
  EXPECT_EQ(complete[0]["ts"].get<double>(), 0.0);
  EXPECT_EQ(complete[0]["dur"].get<double>(), 5000.001);
  EXPECT_EQ(complete[1]["ts"].get<double>(), 1.001);
  EXPECT_EQ(complete[1]["dur"].get<double>(), 0.007);
  EXPECT_EQ(complete[1]["cat"], "case");
  EXPECT_EQ(complete[1]["args"]["payload"], 42);
}

TEST_F(ChromeTrace, EscapesHostileNames) {
  const std::string hostile = "\"},{\n\t\\ \x01 </script> \xc3\xa9";
  const auto trace = written(
      {{0, "host\"\\", {{hostile, Category::case_, 0, 10, 1, 0}, {"not utf-8 \xff", Category::case_, 0, 11, 1, 0}}}});
  std::vector<std::string> names;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") names.push_back(event["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{hostile, "not utf-8 \xef\xbf\xbd"}));
}

TEST_F(ChromeTrace, EventsAreOrderedByStart) {
  const auto trace = written({{0,
                               "h",
                               {{"case", Category::case_, 0, 10, 5, 0},
                                {"phase", Category::phase, 0, 10, 2, 0},
                                {"run", Category::run, 0, 1, 20, 0}}}});
  std::vector<std::string> names;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X") names.push_back(event["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"run", "case", "phase"}));
}

TEST_F(ChromeTrace, EmptyIsStillATrace) { EXPECT_TRUE(written({})["traceEvents"].empty()); }

TEST_F(ChromeTrace, NamesTheFileItCannotWrite) {
  EXPECT_THAT(test::refusal<Error>([] { write_chrome_trace("/nonexistent-folder/trace.json", {}); }),
              testing::HasSubstr("/nonexistent-folder/trace.json"));
  EXPECT_THROW(write_chrome_trace("/dev/full", {{0, "h", {}}}), Error);
}

}  // namespace
}  // namespace assay::trace
