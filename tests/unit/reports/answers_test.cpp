#include "reports/answers/answers.h"

#include "reports/page/page.h"
#include "reports/summary/key_figures.h"
#include "tests/support/blocks.h"
#include "tests/support/runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace assay::report {
namespace {

using fitness::CheckResult;
using fitness::Floor;
using fitness::Floors;
using test::record_of;
using test::run_of;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Record gemm_with(double cpus, double seconds = 1) {
  Record record =
      record_of("gemm/dtype=f32/m=64/n=64/k=64", {test::metric("throughput", 1e9, "FLOP/s", Interval{0.99e9, 1.01e9})});
  record.params = {{"dtype", "f32"}, {"m", 64}, {"n", 64}, {"k", 64}};
  record.checks.push_back({"relative_error", true, 1e-7, 1e-5, {}});
  record.outside_cpu.emplace();
  record.outside_cpu->usable = 2;
  record.outside_cpu->seconds = seconds;
  record.outside_cpu->cpus = cpus;
  return record;
}

const Json cpu_x = {{"environment", {{"cpu", {{"name", "CPU X"}}}}}};

RunSet runs_of(Record record) {
  std::vector<RunData> runs;
  runs.push_back(run_of({std::move(record)}, "r", cpu_x));
  return RunSet(std::move(runs));
}

TEST(Right, CountsCasesAndChecks) {
  const Answer answer = right_answer(runs_of(gemm_with(0)));
  EXPECT_EQ(answer.tone, Tone::good);
  EXPECT_THAT(answer.text, HasSubstr("1 measured case"));
  EXPECT_THAT(answer.text, HasSubstr("1 check"));
}

TEST(Right, NamesWhatFailed) {
  Record record = gemm_with(0);
  record.status = Status::failed;
  record.checks.front().passed = false;
  const Answer answer = right_answer(runs_of(record));
  EXPECT_EQ(answer.tone, Tone::bad);
  EXPECT_THAT(answer.text, HasSubstr("1 case gave a wrong answer"));
  EXPECT_THAT(answer.text, HasSubstr("check relative_error failed"));
}

TEST(Right, WithoutAnyCheckNothingIsSaid) {
  Record record = gemm_with(0);
  record.checks.clear();
  const Answer answer = right_answer(runs_of(record));
  EXPECT_EQ(answer.tone, Tone::plain);
  EXPECT_THAT(answer.text, HasSubstr("none has a check"));
}

TEST(Right, NothingMeasuredIsUnknown) {
  Record record = gemm_with(0);
  record.status = Status::skipped;
  EXPECT_EQ(right_answer(runs_of(record)).tone, Tone::plain);
}

TEST(Steady, MoreThanATwentiethOfACpuIsNotSteadyAndTheUserIsNamed) {
  Record record = gemm_with(0.9);
  record.outside_cpu->processes = {{77, "python3", 0.6}};
  const Answer answer = steady_answer(runs_of(record));
  EXPECT_EQ(answer.tone, Tone::warn);
  EXPECT_THAT(answer.text,
              HasSubstr("others used 0.9 CPUs (python3, pid 77: 0.6; other containers or the kernel: 0.3)"));
  EXPECT_THAT(answer.text, HasSubstr("Only lower bounds: gemm f32 64 x 64 x 64"));
  ASSERT_EQ(answer.evidence.size(), 1u);
}

TEST(Steady, LessThanATwentiethOrFiveTicksIsSteady) {
  for (const Record& record : {gemm_with(0.05), gemm_with(0.2, 0.2)}) {
    const Answer answer = steady_answer(runs_of(record));
    EXPECT_EQ(answer.tone, Tone::good);
    EXPECT_THAT(answer.text, Not(HasSubstr("lower bounds")));
    EXPECT_THAT(answer.evidence, IsEmpty());
  }
}

TEST(Steady, StealAQuotaAndAThrottledGpuDisturb) {
  Record record = gemm_with(0);
  record.outside_cpu->steal = 0.3;
  EXPECT_EQ(disturbance_of(record), "the hypervisor took 0.3 CPUs");
  record.outside_cpu->steal = 0;
  record.outside_cpu->throttled = 0.5;
  EXPECT_EQ(disturbance_of(record), "the cgroup's quota held back 0.5 CPUs");
  record.outside_cpu.reset();
  record.samples.throttled = {{2}};
  EXPECT_EQ(disturbance_of(record), "a GPU was throttled");
  EXPECT_EQ(steady_answer(runs_of(record)).tone, Tone::warn);
}

TEST(Steady, ARecordThatDoesNotSayIsUnknown) {
  Record record = gemm_with(0);
  record.outside_cpu.reset();
  const Answer answer = steady_answer(runs_of(record));
  EXPECT_EQ(answer.tone, Tone::plain);
  EXPECT_THAT(answer.text, HasSubstr("unknown"));
}

TEST(Steady, AMachineDisturbedEveryNightSaysWhatCanStillBeSeen) {
  std::vector<RunData> runs;
  for (const double rate : {1.00, 1.02, 0.98, 1.03, 0.97}) {
    Record record = gemm_with(0.5);
    record.metrics = {test::metric("throughput", 1e9 * rate, "FLOP/s")};
    runs.push_back(run_of({record}, fmt::format("night-{}", rate), cpu_x));
  }
  // The median deviation is 2 %: 1.4826 x 2 % x 1.96 x sqrt(2).
  EXPECT_THAT(steady_answer(RunSet(std::move(runs))).text,
              HasSubstr("Disturbed in 5 of 5 runs: changes below 8.22 % cannot be seen"));
}

TEST(Steady, AWideIntervalIsNamedButNotADisturbance) {
  Record record = gemm_with(0.01);
  record.metrics.front().ci95 = Interval{0.9e9, 1.1e9};
  const Answer answer = steady_answer(runs_of(record));
  EXPECT_EQ(answer.tone, Tone::good);
  EXPECT_THAT(answer.text, HasSubstr("gemm f32 64 x 64 x 64 (± 10 %)"));
}

TEST(Normal, SaysPlainlyThatThereIsNoReference) {
  Record record = gemm_with(0);
  record.metrics.front().of_peak = 0.93;
  const Answer answer = normal_answer(runs_of(record), {});
  EXPECT_EQ(answer.tone, Tone::plain);
  EXPECT_THAT(answer.text, HasSubstr("no reference"));
  EXPECT_THAT(answer.text, HasSubstr("gemm f32 64 x 64 x 64 93 %"));
}

References references(std::vector<double> rates) {
  std::vector<RunData> runs;
  for (const double rate : rates) {
    Record record = gemm_with(0);
    record.metrics = {test::metric("throughput", rate, "FLOP/s")};
    runs.push_back(run_of({record}, fmt::format("reference-{}", rate),
                          {{"id", fmt::format("{}", rate)}, {"environment", cpu_x["environment"]}}));
  }
  return {std::make_shared<const RunSet>(std::move(runs))};
}

TEST(Normal, AFigureHasItsPlaceAmongReferences) {
  const Answer answer = normal_answer(runs_of(gemm_with(0)), references({0.9e9, 1.1e9, 1.2e9}));
  EXPECT_EQ(answer.tone, Tone::good);
  EXPECT_THAT(answer.text,
              HasSubstr("no key figure is below all 3 reference runs of such a machine (1 of 1 compared)"));
  EXPECT_THAT(answer.evidence.front(), HasSubstr("; 3 runs of such machines: 900 MFLOP/s – 1.2 GFLOP/s"));
}

TEST(Normal, BelowEveryReferenceByMoreThanTheToleranceIsNotNormal) {
  EXPECT_EQ(normal_answer(runs_of(gemm_with(0)), references({1.02e9})).tone, Tone::good);
  const Answer answer = normal_answer(runs_of(gemm_with(0)), references({1.1e9, 1.2e9}));
  EXPECT_EQ(answer.tone, Tone::warn);
  EXPECT_THAT(answer.text, HasSubstr("1 is below all of them: gemm f32 64 x 64 x 64"));
}

TEST(Normal, AnIntervalThatReachesBelowAllReferencesIsUndecided) {
  Record record = gemm_with(0);
  record.metrics.front().ci95 = Interval{0.1e9, 3e9};
  for (const double reference : {0.9e9, 1.1e9}) {
    const Answer answer = normal_answer(runs_of(record), references({reference}));
    EXPECT_EQ(answer.tone, Tone::plain);
    EXPECT_THAT(answer.text, HasSubstr("1 is too uncertain to say whether below all of them: gemm f32 64 x 64 x 64"));
  }
}

TEST(Normal, AnotherProtocolIsNoReference) {
  Record record = gemm_with(0);
  record.protocol = Json{{"hash", "x"}, {"form", "steps"}};
  EXPECT_EQ(normal_answer(runs_of(record), references({1.1e9})).tone, Tone::plain);
}

struct OneFloor {
  explicit OneFloor(const RunSet& runs, double at_least) : floors{"f.json", "f", "", {Floor{}}} {
    Floor& floor = floors.floors.front();
    floor.key = "gemm/*";
    floor.metric = "throughput";
    floor.unit = "FLOP/s";
    floor.limit = at_least;
    floor.protocol = Json::object();
    result = check(runs, floors, {});
  }
  Floors floors;
  CheckResult result;
};

TEST(Floors, OneThatIsMetIsNormal) {
  const RunSet runs = runs_of(gemm_with(0));
  const OneFloor floor(runs, 0.9e9);
  EXPECT_EQ(steady_answer(runs, &floor.result).tone, Tone::good);
  const Answer normal = normal_answer(runs, {}, &floor.result);
  EXPECT_EQ(normal.tone, Tone::good);
  EXPECT_THAT(normal.text, HasSubstr("yes: 1 floor met; no reference"));
}

TEST(Floors, OneThatIsMissedIsNotNormal) {
  const RunSet runs = runs_of(gemm_with(0.5));
  const OneFloor floor(runs, 1.1e9);
  const Answer normal = normal_answer(runs, references({0.5e9}), &floor.result);
  EXPECT_EQ(normal.tone, Tone::bad);
  EXPECT_THAT(normal.text, HasSubstr("no: of 1 floor 1 is not met: gemm f32 64 x 64 x 64: 1.00 GFLOP/s < 1.1 GFLOP/s"));
  EXPECT_THAT(normal.text, HasSubstr("disturbed; no key figure is below the reference run"));
}

TEST(Floors, AnIntervalThatContainsTheLimitIsAmberThere) {
  const RunSet runs = runs_of(gemm_with(0));
  const OneFloor floor(runs, 0.995e9);
  const Answer steady = steady_answer(runs, &floor.result);
  EXPECT_EQ(steady.tone, Tone::warn);
  EXPECT_THAT(steady.text, HasSubstr("the 95 % interval contains the floor of gemm f32 64 x 64 x 64"));
  EXPECT_EQ(normal_answer(runs, {}, &floor.result).tone, Tone::plain);
  const Answer beside_good = normal_answer(runs, references({0.5e9}), &floor.result);
  EXPECT_EQ(beside_good.tone, Tone::plain);
  EXPECT_THAT(beside_good.text, HasSubstr("unknown: of 1 floor 0 met, 1 undecided; no key figure is below"));
  const Record& record = *runs.entries().front().record;
  EXPECT_TRUE(amber(record, record.metrics.front(), &floor.result));
  EXPECT_FALSE(amber(record, record.metrics.front(), nullptr));
  EXPECT_FALSE(amber(record, test::metric("latency", 1, "s"), &floor.result)) << "another metric";
  const Document document = whole_report(runs, {.prices = {}, .floors = &floor.result});
  EXPECT_EQ(document.tone, Tone::warn);
  EXPECT_EQ(test::cell(test::table_of(document.sections, "figures"), 0, "median").tone, Tone::warn);
  const Document without = whole_report(runs, {});
  EXPECT_EQ(test::cell(test::table_of(without.sections, "figures"), 0, "median").tone, Tone::plain);
}

Record training_with(double data_wait) {
  Record record = record_of("transformer/model=gpt2-tiny",
                            {test::metric("throughput", 100, "tokens/s"), test::seconds("step_time", 0.1)});
  record.params = {{"model", "gpt2-tiny"}};
  record.spans = {{"data_wait", data_wait}};
  return record;
}

Answer limit_of(Record record) {
  const RunSet runs = runs_of(std::move(record));
  return limit_answer(runs, diagnose(runs, shipped_rules()));
}

TEST(Limit, IsTheWorstFindingWithItsFixAndCeiling) {
  const Answer answer = limit_of(training_with(0.05));
  EXPECT_EQ(answer.tone, Tone::bad);
  EXPECT_THAT(answer.text, HasSubstr("50 % of a step waits for data; the gain of changing it is about 2 x. To do: "));
}

TEST(Limit, WithoutAFindingItIsComputation) {
  const Answer answer = limit_of(training_with(0.001));
  EXPECT_EQ(answer.tone, Tone::good);
  EXPECT_THAT(answer.text, HasSubstr("computation"));
  EXPECT_EQ(limit_of(gemm_with(0)).tone, Tone::plain) << "nothing trained";
}

}  // namespace
}  // namespace assay::report
