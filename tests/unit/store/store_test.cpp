#include "harness/history/store/store.h"

#include "harness/history/store/database.h"
#include "harness/history/store/figures.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/store/history_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay::store {

namespace {

using test::history_run;
using test::night_run;
using test::timed;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const AddOptions plain;

class HistoryStore : public testing::Test {
 protected:
  Store fresh(const char* name = "h.db") { return Store::open(folder_.path() / name); }

  test::TemporaryFolder folder_;
};

TEST_F(HistoryStore, KeepsFiguresWithWhatIsKnownAboutThem) {
  Store store = fresh();
  RunData run = history_run("a", "2026-01-31T23:59:59Z", {timed("gemm/m=1", 0.5)});
  run.run["labels"] = {{"rack", "7"}};
  run.records[0].conditions = {{"types", "f32"}, {"order", "nn"}};
  run.records[0].outside_cpu.emplace().seconds = 3;
  run.records[0].outside_cpu->cpus = 1;
  const Added added = store.add(run, plain);
  EXPECT_TRUE(added.fresh);
  EXPECT_EQ(added.points, 1u);
  const Contents contents = store.read();
  ASSERT_EQ(contents.series.size(), 1u);
  const Series& series = contents.series[0];
  EXPECT_EQ(series.name, "gemm/m=1 time");
  EXPECT_EQ(series.identity, (SeriesIdentity{.machine = "box, AMD Zen 4",
                                             .key = "gemm/m=1",
                                             .device = "cpu",
                                             .conditions = "order=nn\ntypes=f32",
                                             .metric = "time",
                                             .unit = "s",
                                             .better = Better::lower,
                                             .protocol = "p1",
                                             .family = "gemm"}));
  ASSERT_EQ(series.points.size(), 1u);
  const Point& point = series.points[0];
  EXPECT_DOUBLE_EQ(point.log, std::log(0.5));
  EXPECT_FLOAT_EQ(point.within, 0.02f);
  EXPECT_TRUE(point.disturbed);
  EXPECT_EQ(point.night, 20484);  // 2026-01-31
  EXPECT_THAT(contents.facts[static_cast<std::size_t>(point.choices)], ElementsAre(Pair("isa", "avx512")));
  ASSERT_EQ(contents.runs.size(), 1u);
  EXPECT_EQ(contents.runs[0].number, point.run);
  EXPECT_EQ(contents.runs[0].commit, "c-a");
  EXPECT_THAT(contents.facts[static_cast<std::size_t>(contents.runs[0].facts)],
              ElementsAre(Pair("cpu.name", "AMD Zen 4"), Pair("git.dirty", "false"), Pair("hostnames", "box"),
                          Pair("label.rack", "7"), Pair("outside_cpu", "other containers or the kernel (100 %)")));
}

TEST_F(HistoryStore, KnowsWhatElseUsedTheCpusInMostCases) {
  RunData run = history_run("a", "2026-01-31T12:00:00Z", {timed("a", 1), timed("b", 1), timed("c", 1)});
  auto outside_cpu = [&, stores = 0]() mutable {
    Store store = fresh(std::to_string(++stores).c_str());
    store.add(run, plain);
    const Contents contents = store.read();
    const Facts& facts = contents.facts[static_cast<std::size_t>(contents.runs[0].facts)];
    return facts.contains("outside_cpu") ? facts.at("outside_cpu") : "absent";
  };
  EXPECT_EQ(outside_cpu(), "absent");
  OutsideCpu outside;
  outside.usable = 2;
  outside.seconds = 2;
  outside.cpus = 0.9;
  for (Record& record : run.records) record.outside_cpu = outside;
  run.records[0].outside_cpu->processes = {{77, "burner", 0.85}, {78, "small", 0.04}};
  EXPECT_EQ(outside_cpu(), "other containers or the kernel (50 %)");
  run.records[1].outside_cpu->processes = {{77, "burner", 0.85}};
  run.records[1].outside_cpu->steal = 0.2;
  run.records[2].outside_cpu->steal = 0.2;
  EXPECT_EQ(outside_cpu(), "burner, steal (50 %)");
  outside.cpus = 0;
  for (Record& record : run.records) record.outside_cpu = outside;
  EXPECT_EQ(outside_cpu(), "none");
}

TEST(Others, KeepTheirShareToAPowerOfTwo) {
  for (const double share : {1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125}) {
    const Others read = Others::of(Others{"make, steal", 1.2 * share}.text());
    EXPECT_EQ(read.names, "make, steal");
    EXPECT_NEAR(read.share, share, 1e-3);
  }
  EXPECT_EQ((Others{"", 0.4}.text()), "none");
  EXPECT_EQ(Others::of("none").share, 0);
  for (const char* text :
       {"make", "make (%)", "make ( %)", "make (50)", "make (nan %)", "make (101 %)", "make (5 5 %)"}) {
    EXPECT_EQ(Others::of(text).names, text);
    EXPECT_EQ(Others::of(text).share, 0.03125) << text;
  }
}

TEST_F(HistoryStore, LeavesOutWhatIsNoMeasurement) {
  RunData run = history_run("a", "2026-01-31T12:00:00Z",
                            {timed("a", 1), timed("b", 1), timed("c", 0), timed("d", 1), timed("e", 1), timed("f", 1)});
  run.records[0].flags = {"injected:crash"};
  run.records[1].comparable = false;
  run.records[3].status = Status::failed;
  run.records[3].checks = {Check{"relative_error", false, {}, {}, {}}};
  run.records[4].status = Status::skipped;
  Store store = fresh();
  const Added added = store.add(run, plain);
  EXPECT_EQ(added.points, 1u);
  EXPECT_EQ(added.left_out, 3u);  // injected, not comparable, no figure above 0
  EXPECT_THAT(store.read().runs[0].broken, ElementsAre(Pair("d", "failed: check relative_error")));
}

TEST_F(HistoryStore, SaysWhenACaseHeldThatBrokeLater) {
  Store store = fresh();
  store.add(history_run("a", "2026-01-01T00:00:00Z", {timed("x", 1), timed("y", 1)}), plain);
  RunData later = history_run("b", "2026-01-02T00:00:00Z", {timed("x", 1), timed("y", 1)});
  later.records[0].status = Status::error;
  later.records[0].reason = "rank 1 died\nmore";
  store.add(later, plain);
  const Contents contents = store.read();
  EXPECT_THAT(contents.runs[0].held, ElementsAre("x"));
  EXPECT_THAT(contents.runs[1].broken, ElementsAre(Pair("x", "error: rank 1 died")));
  EXPECT_THAT(contents.runs[1].held, ElementsAre());
}

TEST_F(HistoryStore, AveragesRecordsOfOneSeries) {
  RunData run = history_run("a", "2026-01-01T00:00:00Z", {timed("x", 1), timed("x", 4)});
  run.records[1].seed = 7;
  Store store = fresh();
  EXPECT_EQ(store.add(run, plain).points, 1u);
  EXPECT_DOUBLE_EQ(store.read().series[0].points[0].log, std::log(2.0));
}

TEST_F(HistoryStore, AddingTwiceChangesNothingAndAResumedRunReplaces) {
  Store store = fresh();
  RunData run = history_run("a", "2026-01-01T00:00:00Z", {timed("x", 1)});
  run.run["finished"] = nullptr;
  store.add(run, plain);
  const std::int64_t revision = store.read().revision;
  EXPECT_FALSE(store.add(run, plain).fresh);
  EXPECT_EQ(store.read().revision, revision);
  RunData resumed = run;
  resumed.records.push_back(timed("y", 1));
  EXPECT_TRUE(store.add(resumed, plain).fresh);
  Contents contents = store.read();
  EXPECT_EQ(contents.runs.size(), 1u);
  EXPECT_EQ(contents.series.size(), 2u);
  EXPECT_GT(contents.revision, revision);
  EXPECT_FALSE(store.add(run, plain).fresh) << "an old copy of the directory";
  EXPECT_EQ(store.read().series.size(), 2u);
}

TEST_F(HistoryStore, OrderOfAddingDoesNotMatter) {
  Store forward = fresh("a.db"), backward = fresh("b.db");
  for (int night = 0; night < 9; ++night) forward.add(night_run(night, 1 + night), plain);
  for (int night = 8; night >= 0; --night) backward.add(night_run(night, 1 + night), plain);
  const Contents a = forward.read(), b = backward.read();
  for (std::size_t i = 0; i < a.runs.size(); ++i) EXPECT_EQ(a.runs[i].id, b.runs[i].id);
  ASSERT_EQ(a.series.size(), b.series.size());
  for (std::size_t i = 0; i < a.series.size(); ++i)
    for (std::size_t k = 0; k < a.series[i].points.size(); ++k) {
      EXPECT_EQ(a.series[i].points[k].log, b.series[i].points[k].log);
      EXPECT_EQ(a.series[i].points[k].night, b.series[i].points[k].night);
    }
}

TEST_F(HistoryStore, OptionsOverrideWhatTheRunSays) {
  Store store = fresh();
  RunData run = history_run("a", "not a time", {timed("x", 1)});
  EXPECT_THROW(store.add(run, plain), UsageError);
  AddOptions options;
  options.at = "2026-02-01T00:00:00Z";
  options.environment = Facts{{"hostnames", "other"},
                              {"cpu.name", "Zen"},
                              {"gpu.count", "2"},
                              {"gpu.name", "NVIDIA H200"},
                              {"gpu.uuid", "GPU-1; GPU-2"}};
  options.title = [](const Record& record) { return "title of " + record.key; };
  store.add(run, options);
  options.environment->at("gpu.uuid") = "GPU-1; GPU-3";
  options.machine_by_class = true;
  run.run["id"] = "b";
  store.add(run, options);
  const Contents contents = store.read();
  EXPECT_EQ(contents.runs[0].machine, "other, Zen, 2 x NVIDIA H200");
  EXPECT_EQ(contents.runs[1].machine, "Zen, 2 x NVIDIA H200");
  EXPECT_NE(contents.runs[0].hardware, contents.runs[1].hardware);
  EXPECT_EQ(contents.runs[0].night, 20485);
  EXPECT_EQ(contents.series[0].name, "title of x time");
}

TEST_F(HistoryStore, ReadsMainBranchesAndOneMore) {
  Store store = fresh();
  int night = 0;
  for (const char* branch : {"", "main", "master", "topic", "other"}) {
    AddOptions options;
    options.branch = branch;
    store.add(night_run(night++, 1), options);
  }
  EXPECT_EQ(store.read().runs.size(), 3u);
  EXPECT_EQ(store.read("topic").runs.size(), 4u);
  EXPECT_EQ(store.read_all().series[0].points.size(), 5u);
}

TEST_F(HistoryStore, AProtocolThatReplacesAnotherContinuesIt) {
  Store store = fresh();
  for (int night = 0; night < 6; ++night) {
    RunData run = night_run(night, 1);
    for (Record& record : run.records) record.protocol = Json{{"hash", night < 3 ? "old" : "new"}};
    store.add(run, plain);
  }
  const Contents contents = store.read();
  ASSERT_EQ(contents.series.size(), 4u);
  for (const Series& series : contents.series)
    EXPECT_EQ(series.successor_of.has_value(), series.identity.protocol == "new");
}

TEST_F(HistoryStore, TwoProtocolsSideBySideAreTwoSeries) {
  Store store = fresh();
  for (int night = 0; night < 6; ++night) {
    RunData run = history_run(std::to_string(night), fmt::format("2026-{:02}-01T00:00:00Z", night + 1), {});
    for (const char* hash : {"short", "long"}) {
      run.records.push_back(timed("x", 1));
      run.records.back().protocol = Json{{"hash", hash}};
      run.records.back().seed = hash[0];
    }
    store.add(run, plain);
  }
  for (const Series& series : store.read().series) EXPECT_FALSE(series.successor_of);
}

TEST_F(HistoryStore, AnAliasContinuesARenamedBenchmark) {
  Store store = fresh();
  store.add(history_run("a", "2026-01-01T00:00:00Z", {timed("old", 1)}), plain);
  store.add(history_run("b", "2026-01-02T00:00:00Z", {timed("new", 1)}), plain);
  EXPECT_THROW(store.alias("odl", "new"), UsageError);
  store.alias("old", "new");
  store.alias("old", "new");
  const Contents contents = store.read();
  EXPECT_EQ(contents.series[1].successor_of, contents.series[0].number);
  EXPECT_EQ(contents.series[0].name, "new time");
}

TEST_F(HistoryStore, MergingInAnyOrderGivesTheSame) {
  const auto make = [&](const char* name, int first, int last, std::size_t records) {
    Store store = fresh(name);
    for (int night = first; night < last; ++night) {
      RunData run = night_run(night, 1 + night);
      run.records.resize(records);
      store.add(run, plain);
    }
    store.decide(
        {"d-" + std::string(name), DecisionKind::mute, "gemm*", "why", "me", "2026-01-01T00:00:00Z", "2026-02-01"});
    const StoredEvent event{"e", name, "{}"};
    store.save_events({&event, 1});
  };
  make("a", 0, 6, 1), make("b", 3, 9, 2), make("c", 6, 12, 1);
  const auto merged = [&](const char* name, std::initializer_list<const char*> others) {
    Store store = fresh(name);
    for (const char* other : others) store.merge(folder_.path() / other);
    std::vector<std::string> text;
    const Contents contents = store.read();
    std::map<SeriesIdentity, std::vector<double>> series;
    for (const Series& one : contents.series)
      for (const Point& point : one.points) series[one.identity].push_back(point.log);
    for (const auto& [identity, logs] : series)
      text.push_back(fmt::format("{} {}", text_of(identity), fmt::join(logs, " ")));
    for (const store::Run& run : contents.runs) text.push_back(run.id);
    for (const Decision& one : contents.decisions) text.push_back(one.uuid + *one.until);
    for (const StoredEvent& one : contents.events) text.push_back(one.id + one.state);
    return text;
  };
  const auto expected = merged("m1", {"a", "b", "c"});
  EXPECT_EQ(expected.size(), 2u + 12u + 3u + 1u);
  EXPECT_EQ(merged("m2", {"c", "b", "a", "c"}), expected);
  EXPECT_EQ(merged("m3", {"b", "a", "c"}), expected);
}

TEST_F(HistoryStore, CompactingLeavesAMedianPerWeek) {
  Store store = fresh();
  // 2026-01-01 is a Thursday: whole weeks begin on the 5th and the 12th.
  for (int night = 0; night < 20; ++night) store.add(night_run(night, 1 + night), plain);
  const Night first = store.read().runs[0].night;
  EXPECT_EQ(store.compact(first + 13), 2u * (3 + 6));  // the weeks that end on the 4th and the 11th
  const Contents contents = store.read();
  EXPECT_EQ(contents.runs.size(), 20u);
  const std::vector<Point>& points = contents.series[0].points;
  ASSERT_EQ(points.size(), 11u);
  EXPECT_TRUE(points[0].weekly);
  EXPECT_DOUBLE_EQ(points[0].log, (std::log(2) + std::log(3)) / 2);
  EXPECT_TRUE(points[1].weekly);
  EXPECT_DOUBLE_EQ(points[1].log, std::log(8));
  EXPECT_EQ(points[1].night, first + 7);
  EXPECT_FALSE(points[2].weekly);
  EXPECT_EQ(store.compact(first + 13), 0u);
  EXPECT_FALSE(store.add(night_run(5, 9), plain).fresh) << "a run whose figures became a median does not come back";
}

TEST_F(HistoryStore, RevisionSaysWhetherAnAnalysisStillHolds) {
  Store store = fresh();
  store.add(night_run(1, 1), plain);
  std::int64_t revision = store.read().revision;
  store.cache("analysis", revision, "bytes");
  EXPECT_EQ(store.cached("analysis", revision), "bytes");
  store.add(night_run(2, 1), plain);
  EXPECT_EQ(store.read().revision, revision) << "a later night changes no earlier one";
  store.add(night_run(0, 1), plain);
  EXPECT_GT(store.read().revision, revision);
  EXPECT_FALSE(store.cached("analysis", store.read().revision));
}

TEST_F(HistoryStore, AnAnalysisOfLessThanWhatIsThereIsNotKept) {
  Store store = fresh();
  store.add(night_run(1, 1), plain);
  const std::int64_t revision = store.read().revision;
  Store::open_existing(folder_.path() / "h.db").add(night_run(2, 1), plain);
  store.cache("analysis", revision, "of one night");
  EXPECT_FALSE(store.cached("analysis", revision));
}

TEST_F(HistoryStore, HostileTextsComeBackAsTheyWere) {
  const std::string hostile = "'; DROP TABLE run; --\n\"<script>\x01 \xff\xfe" + std::string("\0end", 4);
  Store store = fresh();
  store.add(history_run(hostile, "2026-01-01T00:00:00Z", {timed(hostile, 1), timed(std::string(1 << 20, 'x'), 1)}),
            plain);
  store.decide({hostile, DecisionKind::acknowledge, hostile, hostile, hostile, hostile, std::nullopt});
  const Contents contents = store.read();
  EXPECT_EQ(contents.runs[0].id, hostile);
  EXPECT_EQ(contents.series[0].identity.key, hostile);
  EXPECT_EQ(contents.series[1].identity.key.size(), std::size_t{1} << 20);
  EXPECT_EQ(contents.decisions[0].reason, hostile);
  EXPECT_FALSE(contents.decisions[0].until);
}

TEST_F(HistoryStore, SaysWhatIsWrongWithAPath) {
  const auto message = [](auto work) -> std::string {
    try {
      work();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message([&] { Store::open(folder_.path()); }), HasSubstr("is a directory"));
  EXPECT_THAT(message([&] { Store::open(folder_.path() / "no/h.db"); }), HasSubstr("No such file"));
  EXPECT_THAT(message([&] { Store::open_existing(folder_.path() / "h.db"); }), HasSubstr("no such history"));
  Database(folder_.path() / "other.db", Database::Access::create).run("CREATE TABLE t(x)");
  EXPECT_THAT(message([&] { Store::open(folder_.path() / "other.db"); }), HasSubstr("another program"));
}

TEST(FileSystems, OnlyKnownLocalOnesShareMemory) {
  EXPECT_TRUE(shares_memory(0xEF53));       // ext4
  EXPECT_FALSE(shares_memory(0x6969));      // NFS
  EXPECT_FALSE(shares_memory(0x0BD00BD0));  // Lustre
  EXPECT_FALSE(shares_memory(0x47504653));  // GPFS
  EXPECT_FALSE(shares_memory(0x65735546));  // FUSE
  EXPECT_FALSE(shares_memory(0x794C7630));  // overlayfs
}

}  // namespace

}  // namespace assay::store
