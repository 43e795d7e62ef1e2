// Floors: reading them, matching records, and verdicts computed by hand.
#include "reports/acceptance/document.h"

#include "harness/fitness/floors/judge.h"
#include "harness/fitness/floors/metric_units.h"
#include "reports/render/render.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {
namespace {

using namespace fitness;

using test::run_of;
using testing::HasSubstr;
using testing::Not;

Record record_of(const std::string& key, double value, std::optional<Interval> range, const std::string& host = "") {
  Record record = test::record_of(key, {test::metric("throughput", value, "FLOP/s", range)});
  record.protocol = {{"data", "normal"}, {"min_samples", 30}};
  if (!host.empty()) record.ranks.push_back({0, host, "NVIDIA H100", 1.0});
  return record;
}

Floor floor_of(const std::string& key, double limit, Bound bound = Bound::at_least) {
  Floor floor;
  floor.key = key;
  floor.metric = "throughput";
  floor.unit = "FLOP/s";
  floor.bound = bound;
  floor.limit = limit;
  floor.protocol = Json::object();
  floor.source = "a test";
  floor.pointer = "/floors/0";
  return floor;
}

// What one floor says about these runs.
struct Checked {
  Checked(Floor floor, std::vector<RunData> data)
      : floors{"f.json", "f", "", {std::move(floor)}}, runs(std::move(data)) {
    result = check(runs, floors, {});
  }
  const FloorResult& only() const { return result.results.front(); }
  Verdict verdict() const { return only().verdict; }
  std::string text() const { return render_terminal(check_document(result), {}); }

  Floors floors;
  RunSet runs;
  CheckResult result;
};

Floors load(const std::string& text) {
  const std::string path = testing::TempDir() + "floors-" +
                           std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
  std::ofstream(path) << text;
  return load_floors(path);
}

std::string refusal(const std::string& text) {
  return test::refusal([&] { load(text); });
}

TEST(Acceptance, StarsMatchSlashesAndNothingElseIsSpecial) {
  EXPECT_TRUE(key_matches("gemm/*", "gemm/dtype=f32/m=1"));
  EXPECT_TRUE(key_matches("*", ""));
  EXPECT_TRUE(key_matches("gemm/*/cache=cold*", "gemm/dtype=f32/m=1/cache=cold/duration=burst"));
  EXPECT_TRUE(key_matches("a*b*c", "a/b/b/c"));
  EXPECT_TRUE(key_matches("x/path=/data/a?[b]{c}.*/z", "x/path=/data/a?[b]{c}.jpg/z"));
  EXPECT_TRUE(key_matches("x/path=a*b", "x/path=a*b"));
  EXPECT_FALSE(key_matches("gemm/*", "peak/dtype=f32"));
  EXPECT_FALSE(key_matches("gemm/dtype=f?2", "gemm/dtype=f32"));
  EXPECT_FALSE(key_matches("gemm/dtype=F32", "gemm/dtype=f32"));
  EXPECT_FALSE(key_matches("gemm", "gemm/dtype=f32"));
  EXPECT_FALSE(key_matches("", "gemm"));
}

// A floor of 700: [701, 720] meets it, [690, 699] misses it, [690, 710] straddles it; an end at 700 meets it.
TEST(Acceptance, TheIntervalDecidesOrWithoutOneTheValue) {
  EXPECT_EQ(judge(710, Interval{701, 720}, Bound::at_least, 700), Outcome::pass);
  EXPECT_EQ(judge(710, Interval{700, 720}, Bound::at_least, 700), Outcome::pass);
  EXPECT_EQ(judge(695, Interval{690, 699}, Bound::at_least, 700), Outcome::fail);
  EXPECT_EQ(judge(705, Interval{690, 710}, Bound::at_least, 700), Outcome::inconclusive);
  EXPECT_EQ(judge(695, Interval{690, 700}, Bound::at_least, 700), Outcome::inconclusive);
  EXPECT_EQ(judge(700, std::nullopt, Bound::at_least, 700), Outcome::pass);
  EXPECT_EQ(judge(699.9, std::nullopt, Bound::at_least, 700), Outcome::fail);
  EXPECT_EQ(judge(2e-6, Interval{1e-6, 3e-6}, Bound::at_most, 3e-6), Outcome::pass);
  EXPECT_EQ(judge(2e-6, Interval{1e-6, 3e-6}, Bound::at_most, 2.5e-6), Outcome::inconclusive);
  EXPECT_EQ(judge(2e-6, Interval{1e-6, 3e-6}, Bound::at_most, 0.9e-6), Outcome::fail);
  EXPECT_EQ(judge(2e-6, std::nullopt, Bound::at_most, 1.9e-6), Outcome::fail);
}

TEST(Acceptance, AnIntervalThatMissesItsValueIsWidened) {
  const Checked beside(floor_of("gemm/*", 700), {run_of({record_of("gemm/a=1", 690, Interval{710, 720})})});
  EXPECT_EQ(beside.verdict(), Verdict::inconclusive);  // [690, 720]
  const Checked reversed(floor_of("gemm/*", 700), {run_of({record_of("gemm/a=1", 710, Interval{720, 705})})});
  EXPECT_EQ(reversed.verdict(), Verdict::pass);  // [705, 720]
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Checked none(floor_of("gemm/*", 700), {run_of({record_of("gemm/a=1", 710, Interval{nan, 720})})});
  EXPECT_EQ(none.verdict(), Verdict::pass);
  EXPECT_THAT(none.text(), HasSubstr("no interval: the value alone decides"));
}

// 600 TFLOP/s with a floor of 700: 100 / 700 = 14 % below. The half width of 10 T allows three digits.
TEST(Acceptance, TheWorstRecordDecidesAndIsNamed) {
  const Checked checked(
      floor_of("gemm/*", 7e14),
      {run_of({record_of("gemm/m=1", 8.12e14, Interval{7.89e14, 8.3e14}, "host-a")}, "runs/a", {{"started", "1"}}),
       run_of({record_of("gemm/m=1", 6e14, Interval{5.9e14, 6.1e14}, "host-b"),
               record_of("gemm/m=2", 7.05e14, Interval{6.9e14, 7.2e14}, "host-b")},
              "runs/b", {{"started", "2"}})});
  EXPECT_EQ(checked.verdict(), Verdict::fail);
  EXPECT_EQ(checked.result.code(), ExitCode::failed);
  const std::string text = checked.text();
  EXPECT_THAT(text, HasSubstr("FAIL  gemm/* throughput 600 TFLOP/s < 700 TFLOP/s [590, 610]  b/records.jsonl line 1"));
  EXPECT_THAT(text, HasSubstr("/metrics/0/value"));
  EXPECT_THAT(text, HasSubstr("(worst of 3)"));
  EXPECT_THAT(text, HasSubstr("14 % below the floor; host host-b, NVIDIA H100"));
  EXPECT_THAT(text, HasSubstr("705 TFLOP/s >= 700 TFLOP/s [690, 720]"));  // the inconclusive one is listed
  EXPECT_THAT(text, HasSubstr("passed: 0 · failed: 1 · inconclusive: 0 · not judged: 0"));
}

TEST(Acceptance, UnusableRecordsFailARequiredFloorAndAreReportedForOthers) {
  const auto with = [](const std::function<void(Record&)>& change, bool required) {
    Record record = record_of("gemm/m=1", 9e14, Interval{8.9e14, 9.1e14});
    change(record);
    Floor floor = floor_of("gemm/*", 7e14);
    floor.required = required;
    return Checked(floor, {run_of({record})});
  };
  const std::vector<std::pair<std::function<void(Record&)>, std::string>> cases = {
      {[](Record& r) { r.status = Status::skipped, r.reason = "no GPU", r.metrics.clear(); }, "skipped: no GPU"},
      {[](Record& r) { r.status = Status::error, r.reason = "out of memory"; }, "broke: out of memory"},
      {[](Record& r) {
         r.status = Status::failed, r.checks.push_back({"wrong_elements", false, 1.0, 0.0, {}});
       },
       "its answer is wrong: wrong_elements"},
      {[](Record& r) { r.comparable = false, r.flags = {"oversubscribed"}; }, "not comparable: oversubscribed"},
      {[](Record& r) { r.metrics.front().value.reset(); }, "its throughput is unknown (null)"},
      {[](Record& r) { r.metrics.front().name = "bandwidth"; }, "has no throughput: it has bandwidth"},
      {[](Record& r) { r.flags = {"injected:slow-rank"}; }, "1 record with injected faults"},
      {[](Record& r) { r.key = "peak/x=1"; }, "matched no record"},
  };
  for (const auto& [change, says] : cases) {
    const Checked strict = with(change, true), lenient = with(change, false);
    EXPECT_EQ(strict.verdict(), Verdict::fail) << says;
    EXPECT_EQ(strict.result.code(), ExitCode::failed) << says;
    EXPECT_THAT(strict.only().reason, HasSubstr("required, but " + says));
    EXPECT_EQ(lenient.verdict(), Verdict::not_judged) << says;
    EXPECT_EQ(lenient.result.code(), ExitCode::no_data) << says;
    EXPECT_THAT(lenient.text(), HasSubstr(says));
  }
}

TEST(Acceptance, ASkippedRecordFailsOnlyARequiredFloor) {
  Record skipped = record_of("gemm/m=2", 0, {});
  skipped.status = Status::skipped;
  const std::vector<RunData> runs = {run_of({record_of("gemm/m=1", 9e14, {}), skipped})};
  Floor floor = floor_of("gemm/*", 7e14);
  EXPECT_EQ(Checked(floor, runs).verdict(), Verdict::pass);
  floor.required = true;
  EXPECT_EQ(Checked(floor, runs).verdict(), Verdict::fail);
}

TEST(Acceptance, ADifferentProtocolIsRefusedAndCountsAsMissing) {
  Floor floor = floor_of("gemm/*", 7e14);
  floor.protocol = {{"data", "zeros"}, {"min_samples", 30.0}, {"cach", "hot"}};
  floor.required = true;
  const Checked refused(floor, {run_of({record_of("gemm/m=1", 9e14, {})})});
  EXPECT_EQ(refused.verdict(), Verdict::fail);
  EXPECT_THAT(refused.only().reason, HasSubstr("data is normal, the floor asks for zeros"));
  EXPECT_THAT(refused.only().reason, HasSubstr("it has no cach"));
  EXPECT_THAT(refused.only().reason, Not(HasSubstr("min_samples")));  // 30 is 30.0
  EXPECT_EQ(refused.only().records.front().outcome, Outcome::refused);
  EXPECT_FALSE(refused.only().records.front().value);

  // Next to a record with the right protocol it is ignored and reported.
  Record zeros = record_of("gemm/m=2", 9.5e14, {});
  zeros.protocol["data"] = "zeros";
  floor.protocol = {{"data", "normal"}};
  const Checked one(floor, {run_of({record_of("gemm/m=1", 9e14, {}), zeros})});
  EXPECT_EQ(one.verdict(), Verdict::pass);
  EXPECT_THAT(one.text(), HasSubstr("not counted: 1 record; different protocol: data is zeros"));
}

TEST(Acceptance, FiltersChooseDeviceWorldAndLabels) {
  Record cuda = record_of("collective/op=all_reduce", 9e14, {});
  cuda.device = "cuda";
  cuda.world_ranks = 8;
  cuda.choices["algorithm"] = "NVLS ring";
  const std::vector<RunData> runs = {run_of({cuda})};
  const auto verdict = [&](const std::function<void(Floor&)>& change) {
    Floor floor = floor_of("*", 7e14);
    change(floor);
    return Checked(floor, runs).verdict();
  };
  EXPECT_EQ(verdict([](Floor& f) { f.device = "cuda", f.ranks = 8, f.nodes = 1, f.labels["algorithm"] = "NVLS*"; }),
            Verdict::pass);
  EXPECT_EQ(verdict([](Floor& f) { f.device = "cpu"; }), Verdict::not_judged);
  EXPECT_EQ(verdict([](Floor& f) { f.ranks = 4; }), Verdict::not_judged);
  EXPECT_EQ(verdict([](Floor& f) { f.nodes = 2; }), Verdict::not_judged);
  EXPECT_EQ(verdict([](Floor& f) { f.labels["algorithm"] = "ring"; }), Verdict::not_judged);
  EXPECT_EQ(verdict([](Floor& f) { f.labels["other"] = "*"; }), Verdict::not_judged);
}

// Every machine must have the required records: leaving one out must not let a machine pass.
TEST(Acceptance, ARequiredFloorAppliesToEveryMachine) {
  Floor floor = floor_of("gemm/*", 7e14);
  floor.required = true;
  const RunData a = run_of({record_of("gemm/m=1", 9e14, {}, "host-a")}, "a", {{"started", "1"}});
  const RunData b = run_of({record_of("peak/m=1", 9e14, {}, "host-b")}, "b", {{"started", "2"}});
  const Checked missing(floor, {a, b});
  EXPECT_EQ(missing.verdict(), Verdict::fail);
  EXPECT_THAT(missing.only().reason, HasSubstr("no record of host host-b"));
  // Two runs of one machine, each with some of the cases, count as one machine.
  EXPECT_EQ(Checked(floor, {a, run_of({record_of("peak/m=1", 9e14, {}, "host-a")}, "b", {{"started", "2"}})}).verdict(),
            Verdict::pass);
  // Runs that name no host may be of any.
  EXPECT_EQ(Checked(floor, {run_of({record_of("gemm/m=1", 9e14, {})}, "a", {{"started", "1"}}), b}).verdict(),
            Verdict::pass);
  floor.required = false;
  EXPECT_EQ(Checked(floor, {a, b}).verdict(), Verdict::pass);
}

Floor fleet_floor(const std::string& key, double share, int members = 3) {
  Floor floor = floor_of(key, share);
  floor.relative = true;
  floor.min_members = members;
  return floor;
}

// Hosts at 100, 101, 99 and 90: the median is (99 + 100) / 2 = 99.5, and 95 % of it 94.525. 90 fails, by 4.8 %.
TEST(Fleet, EachHostIsComparedWithTheMedian) {
  std::vector<RunData> runs;
  for (const auto& [host, value] : {std::pair{"a", 100.0}, {"b", 101.0}, {"c", 99.0}, {"d", 90.0}})
    runs.push_back(
        run_of({record_of("gemm/m=1", value, Interval{value - 0.5, value + 0.5}, host)}, host, {{"started", host}}));
  const Checked checked(fleet_floor("gemm/*", 0.95), runs);
  ASSERT_EQ(checked.verdict(), Verdict::fail);
  const Judgement& worst = checked.only().records.front();
  EXPECT_EQ(worst.outcome, Outcome::fail);
  EXPECT_DOUBLE_EQ(*worst.median, 99.5);
  EXPECT_DOUBLE_EQ(*worst.limit, 94.525);
  EXPECT_EQ(worst.members, 4u);
  EXPECT_THAT(checked.text(), HasSubstr("4.8 % below the floor; host d"));
  EXPECT_EQ(std::count_if(checked.only().records.begin(), checked.only().records.end(),
                          [](const Judgement& each) { return each.outcome == Outcome::pass; }),
            3);
}

// A host that measured three times counts once: its median is 100, next to 98 and 104. The fleet's median is 100, not
// the 100.5 or so of all five figures; every record but the 94 meets the floor of 95.
TEST(Fleet, AHostThatMeasuredOftenCountsOnce) {
  std::vector<RunData> runs = {run_of({record_of("gemm/m=1", 98, {}, "b")}, "b", {{"started", "1"}}),
                               run_of({record_of("gemm/m=1", 104, {}, "c")}, "c", {{"started", "2"}})};
  for (const auto& [dir, value] : {std::pair{"a1", 94.0}, {"a2", 100.0}, {"a3", 110.0}})
    runs.push_back(run_of({record_of("gemm/m=1", value, {}, "a")}, dir, {{"started", dir}}));
  const Checked checked(fleet_floor("gemm/*", 0.95), runs);
  ASSERT_EQ(checked.verdict(), Verdict::fail);
  EXPECT_DOUBLE_EQ(*checked.only().records.front().median, 100);
  EXPECT_EQ(checked.only().records.front().members, 3u);
  EXPECT_DOUBLE_EQ(*checked.only().records.front().value, 94);
  EXPECT_EQ(checked.only().records[1].outcome, Outcome::pass);
}

// Four ranks at 1, 1, 1 and 1.25 s per repetition: the record's 800 is that of the slowest. The others alone would
// reach 800 * 1.25 = 1,000, the median. Rank 3's 800 is below 950, by 16 % of the limit.
TEST(Fleet, RanksOfOneHostAreComparedWithEachOther) {
  Record record = record_of("gemm/m=1", 800, Interval{796, 804});
  for (int rank = 0; rank < 4; ++rank) record.ranks.push_back({rank, "a", "NVIDIA H100", rank == 3 ? 1.25 : 1.0});
  const Checked checked(fleet_floor("gemm/*", 0.95), {run_of({record})});
  ASSERT_EQ(checked.verdict(), Verdict::fail);
  const Judgement& worst = checked.only().records.front();
  EXPECT_DOUBLE_EQ(*worst.median, 1000);
  EXPECT_DOUBLE_EQ(*worst.value, 800);
  EXPECT_EQ(worst.members, 4u);
  EXPECT_EQ(worst.pointer, "/ranks/3/median");
  EXPECT_EQ(worst.culprit, "rank 3, host a, NVIDIA H100");
  EXPECT_THAT(worst.reason, HasSubstr("16 % below"));
}

TEST(Fleet, SmallOrNamelessOrMixedFleetsAreInconclusive) {
  const auto verdict_of = [](std::vector<RunData> runs) {
    return Checked(fleet_floor("gemm/*", 0.95), std::move(runs));
  };
  const Checked two = verdict_of({run_of({record_of("gemm/m=1", 100, {}, "a")}, "a", {{"started", "1"}}),
                                  run_of({record_of("gemm/m=1", 50, {}, "b")}, "b", {{"started", "2"}})});
  EXPECT_EQ(two.verdict(), Verdict::inconclusive);
  EXPECT_EQ(two.result.code(), ExitCode::no_data);
  EXPECT_THAT(two.only().reason, HasSubstr("a fleet of 2: a median needs at least 3"));
  const Checked nameless = verdict_of({run_of({record_of("gemm/m=1", 100, {})}, "a", {{"started", "1"}})});
  EXPECT_THAT(nameless.only().reason, HasSubstr("names no host"));
  // A different protocol, size or GPU makes a different fleet.
  std::vector<RunData> mixed;
  for (const std::string host : {"a", "b", "c"})
    mixed.push_back(run_of({record_of("gemm/m=1", 100, {}, host)}, host, {{"started", host}}));
  mixed[0].records[0].protocol["data"] = "zeros";
  EXPECT_EQ(verdict_of(mixed).verdict(), Verdict::inconclusive);
  mixed[0].records[0].protocol["data"] = "normal";
  EXPECT_EQ(verdict_of(mixed).verdict(), Verdict::pass);
  mixed[0].records[0].ranks[0].device = "NVIDIA H200";
  EXPECT_EQ(verdict_of(mixed).verdict(), Verdict::inconclusive);
}

TEST(Acceptance, OrderOfRunsAndCopiesDoNotMatter) {
  std::vector<RunData> runs;
  for (const std::string host : {"a", "b", "c", "d"})
    runs.push_back(run_of({record_of("gemm/m=1", 100 + host[0] % 3, {}, host), record_of("gemm/m=2", 90, {}, host)},
                          "x/" + host, {{"started", host}}));
  const auto bytes = [](std::vector<RunData> given) {
    const Checked checked(fleet_floor("gemm/*", 0.97), std::move(given));
    return check_json(checked.result).dump() + checked.text() + render_junit(check_suite(checked.result));
  };
  const std::string expected = bytes(runs);
  std::sort(runs.begin(), runs.end(), [](const RunData& a, const RunData& b) { return a.dir > b.dir; });
  EXPECT_EQ(bytes(runs), expected);
  RunData copy = runs.back();
  copy.dir = "y/copy";
  runs.push_back(copy);
  EXPECT_EQ(bytes(runs), expected);
}

TEST(Acceptance, NoFinishedCaseIsNotEnoughData) {
  Floor floor = floor_of("gemm/*", 1);
  floor.required = true;
  const Checked checked(floor, {run_of({})});
  EXPECT_EQ(checked.result.code(), ExitCode::no_data);
  EXPECT_EQ(checked.verdict(), Verdict::not_judged);
  EXPECT_EQ(checked.only().reason, "no finished case");
}

TEST(Acceptance, WrongUnitsAndUnknownMetricsAreErrorsInTheFile) {
  Floor seconds = floor_of("gemm/*", 1);
  seconds.unit = "img/s";
  EXPECT_THROW(Checked(seconds, {run_of({record_of("gemm/m=1", 9e14, {})})}), UsageError);
  Floor typo = floor_of("gemm/*", 1);
  typo.metric = "througput";
  EXPECT_THAT(test::refusal([&] { Checked(typo, {run_of({record_of("gemm/m=1", 9e14, {})})}); }),
              HasSubstr("f.json: /floors/0/metric: unknown metric \"througput\"; did you mean \"throughput\"?"));
  // A metric may be known only from the records.
  Record record = record_of("new/x=1", 5, {});
  record.metrics.front().name = "novel";
  record.metrics.front().unit = "1";
  Floor novel = floor_of("new/*", 4);
  novel.metric = "novel";
  novel.unit = "1";
  EXPECT_EQ(Checked(novel, {run_of({record})}).verdict(), Verdict::pass);
}

TEST(Floors, LimitsMayBeWrittenWithUnits) {
  const auto limit = [](const std::string& metric, const std::string& unit, const std::string& text) {
    return load(R"({"schema":1,"floors":[{"key":"x/*","metric":")" + metric + R"(","unit":")" + unit +
                R"(","at_least":)" + text + R"(,"source":"s"}]})")
        .floors.front()
        .limit;
  };
  EXPECT_DOUBLE_EQ(limit("throughput", "FLOP/s", "7e14"), 7e14);
  EXPECT_DOUBLE_EQ(limit("throughput", "FLOP/s", R"("700 TFLOP/s")"), 7e14);
  EXPECT_DOUBLE_EQ(limit("throughput", "FLOP/s", R"("0.7PFLOP/s")"), 7e14);
  EXPECT_DOUBLE_EQ(limit("bandwidth", "B/s", R"("24.5 GB/s")"), 2.45e10);
  EXPECT_DOUBLE_EQ(limit("throughput", "tokens/s", R"("1.24 M tokens/s")"), 1.24e6);
  EXPECT_DOUBLE_EQ(limit("throughput", "img/s", R"("900 img/s")"), 900);
  EXPECT_DOUBLE_EQ(limit("latency", "s", R"("2.5 us")"), 2.5e-6);
  EXPECT_DOUBLE_EQ(limit("peak_memory", "B", R"("2 GiB")"), 2147483648.0);
  EXPECT_DOUBLE_EQ(limit("mfu", "1", R"("40%")"), 0.4);
  for (const char* text : {R"("700 TB/s")", R"("700")", R"("FLOP/s")", R"("-1 TFLOP/s")", R"("nan FLOP/s")",
                           R"("7 XFLOP/s")", "-1", "null", "true", "[1]"})
    EXPECT_THROW(limit("throughput", "FLOP/s", text), UsageError) << text;
}

TEST(Floors, AllErrorsInAFileAreReportedAtOnce) {
  const std::string errors = refusal(R"({"schema":1,"sauce":1,"floors":[
    {"key":"gemm/*","metric":"throughput","unit":"TFLOP/s","at_least":1,"source":"s"},
    {"key":"gemm/*","metric":"throughput","unit":"FLOP/s","at_least":1,"at_most":2,"source":"s"},
    {"key":"gemm/*","metric":"throughput","unit":"FLOP/s","source":"  "},
    {"key":"gemm/*","metric":"throughput","unit":"FLOP/s","atleast":1,"at_least":-1,"source":"s"},
    {"key":"a/*","metric":"latency","unit":"s","at_most":1,"source":"s","required":"yes"},
    {"key":"b/*","metric":"latency","unit":"s","at_most":1,"source":"s","protocol":{"cache":["cold"]}},
    {"key":"c/*","metric":"latency","unit":"s","at_most":1,"source":"s","device":"gpu"},
    {"key":"d/*","metric":"latency","unit":"s","at_most":"90%","source":"s","relative_to":"fleet_median"},
    {"key":"e/*","metric":"latency","unit":"s","at_most":1,"source":"s"},
    {"key":"e/*","metric":"latency","unit":"s","at_most":2,"source":"t","protocol":{}},
    7]})");
  for (const char* says :
       {"/sauce: unknown key \"sauce\"", "/floors/0/unit: \"TFLOP/s\" does not fit \"throughput\": that is in FLOP/s",
        "/floors/1: has both", "/floors/2: needs a limit", "/floors/2/source: is empty",
        "/floors/3/atleast: unknown key \"atleast\"; did you mean \"at_least\"?", "/floors/3/at_least: -1 is too small",
        "/floors/4/required: must be true or false", "/floors/5/protocol/cache: must be text, a number, true or false",
        "/floors/6/device:", "/floors/7/at_most: \"90%\" is too small: at least 1",
        "/floors/9: is the same floor as /floors/8", "/floors/10: must be an object"})
    EXPECT_THAT(errors, HasSubstr(says));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n') + 1, 13);
  EXPECT_THAT(refusal(R"({"schema":1,"floors":[]})"), HasSubstr("/floors: is an empty list"));
  EXPECT_THAT(refusal(R"({"schema":2})"), HasSubstr("schema"));
  EXPECT_THAT(refusal(R"({"schema":1})"), HasSubstr("\"floors\" is missing"));
}

TEST(Floors, UnitsFollowTheFamilyIfItIsNamed) {
  EXPECT_EQ(units_of("throughput", "gemm"), (std::vector<std::string>{"FLOP/s", "OP/s"}));
  EXPECT_EQ(units_of("throughput", "llama"), std::vector<std::string>{"tokens/s"});
  EXPECT_EQ(units_of("throughput", "*").size(), 4u);
  EXPECT_EQ(units_of("busbw", "collective"), std::vector<std::string>{"B/s"});
  EXPECT_TRUE(units_of("novel", "gemm").empty());
}

}  // namespace
}  // namespace assay::report
