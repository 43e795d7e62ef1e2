// Results of other tools: how they are kept, and Google Benchmark's JSON.
#include "harness/figures/foreign.h"

#include "harness/core/error.h"
#include "harness/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ForeignFigure figure(const std::string& name, const std::string& metric = "time") {
  ForeignFigure one;
  one.name = name, one.metric = metric, one.unit = "s", one.better = Better::lower;
  return one;
}

TEST(TextPool, EqualTextsHaveOneNumber) {
  TextPool pool;
  for (int round = 0; round < 2; ++round)
    for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(pool.id("text " + std::to_string(i)), i);
  EXPECT_EQ(pool.text(999), "text 999");
  EXPECT_EQ(pool.text(pool.id("")), "");
}

TEST(Foreign, ValuesOfOneFigureAreItsSamplesInTheOrderOfNames) {
  FigureCollector collector;
  collector.add(figure("b"), 1), collector.add(figure("a"), 2), collector.add(figure("b"), 3);
  collector.add(figure("b", "cpu"), 4);
  const auto figures = collector.take().figures();
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[0].name, "b");
  EXPECT_THAT(figures[0].values, ElementsAre(1, 3));
  EXPECT_EQ(figures[1].metric, "cpu");
  EXPECT_EQ(figures[2].name, "a");
}

TEST(Foreign, OtherConditionsAndWorldsAreOtherCases) {
  FigureCollector collector;
  ForeignFigure one = figure("a");
  collector.add(one, 1);
  one.conditions["label"] = "x";
  collector.add(one, 2);
  one.conditions.clear(), one.world = std::make_shared<const ForeignWorld>(ForeignWorld{16, 2, {}, "cuda"});
  collector.add(one, 3);
  const ForeignFile file = collector.take();
  int cases = 0;
  file.runs.at(0).each_case(file.texts, [&](const auto& figures) {
    ++cases;
    EXPECT_EQ(figures.size(), 1u);
    EXPECT_EQ(figures[0].values.size(), 1u);
  });
  EXPECT_EQ(cases, 3);
}

TEST(Foreign, ContextsAreRunsAndComeBack) {
  FigureCollector collector;
  ForeignContext a, b;
  a.time = "2026-01-01T00:00:00Z", b.time = "2026-01-02T00:00:00Z";
  for (const ForeignContext* about : {&a, &b, &a}) collector.measured(*about), collector.add(figure("x"), 1);
  const ForeignFile file = collector.take();
  ASSERT_EQ(file.runs.size(), 2u);
  EXPECT_EQ(file.runs[0].about.time, a.time);
}

TEST(Foreign, AValueThatIsNotFiniteIsAnError) {
  FigureCollector collector;
  collector.add(figure("x"), 1), collector.add(figure("x"), NAN);
  const ForeignFile file = collector.take();
  file.runs.at(0).each_case(file.texts, [&](const auto& figures) {
    EXPECT_EQ(figures[0].status, Status::error);
    EXPECT_THAT(figures[0].values, ElementsAre(1));
  });
}

TEST(Foreign, ATimeThatCannotBeReadNamesItsLine) {
  FigureCollector collector;
  EXPECT_EQ(collector.time("2026-01-31T12:00:00+02:00", "f: line 3"), "2026-01-31T10:00:00Z");
  EXPECT_EQ(collector.time("", "f"), "");
  try {
    collector.time("noon", "{\n \"date\": \"noon\"}", "f");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("f: line 2: the time \"noon\""));
  }
}

// Google Benchmark, from here on.
std::string json_of(const std::string& entries, const std::string& context = "{}") {
  return "{\"context\": " + context + ", \"benchmarks\": [" + entries + "]}";
}

std::vector<ForeignFigure> entries_of(const std::string& entries) {
  return read_gbench(json_of(entries), "f").figures();
}

std::vector<std::string> metrics(const std::vector<ForeignFigure>& figures) {
  std::vector<std::string> names;
  for (const ForeignFigure& one : figures) names.push_back(one.metric);
  return names;
}

std::vector<std::string> names(const std::vector<ForeignFigure>& figures) {
  std::vector<std::string> all;
  for (const ForeignFigure& one : figures)
    if (all.empty() || all.back() != one.name) all.push_back(one.name);
  return all;
}

TEST(Gbench, CpuTimeComesFirstUnlessTheNameSaysThatItIsNotMeasured) {
  EXPECT_THAT(metrics(entries_of(R"({"name": "a", "real_time": 2, "cpu_time": 1})")),
              ElementsAre("cpu_time", "real_time"));
  for (const char* name : {"a/real_time", "a/manual_time/threads:4", "a/8/real_time/threads:2"}) {
    const auto figures = entries_of(R"({"name": ")" + std::string(name) + R"(", "real_time": 2, "cpu_time": 1})");
    EXPECT_THAT(metrics(figures), ElementsAre("real_time")) << name;
    EXPECT_EQ(figures[0].labels.at("cpu_time"), "1e-09 s");
  }
  EXPECT_THAT(metrics(entries_of(R"({"name": "a/real_timer", "real_time": 2, "cpu_time": 1})")),
              ElementsAre("cpu_time", "real_time"));
}

TEST(Gbench, CountersHaveAGuessedDirection) {
  const auto figures = entries_of(R"({"name": "a", "cpu_time": 1, "latency_p99": 3, "hits": 4, "repetitions": 9})");
  EXPECT_THAT(metrics(figures), ElementsAre("cpu_time", "latency_p99", "hits"));
  EXPECT_FALSE(figures[0].guessed);
  EXPECT_EQ(figures[1].better, Better::lower);
  EXPECT_EQ(figures[2].better, Better::higher);
  EXPECT_TRUE(figures[2].guessed);
}

TEST(Gbench, DifferentBenchmarksOfOneNameAreDifferentCases) {
  EXPECT_THAT(
      names(entries_of(R"({"name": "a", "cpu_time": 1, "label": "x"}, {"name": "a", "cpu_time": 2, "label": "y"})")),
      ElementsAre("a/label:x", "a/label:y"));
  EXPECT_THAT(
      names(entries_of(
          R"({"name": "a", "cpu_time": 1, "family_index": 0}, {"name": "a", "cpu_time": 2, "family_index": 3})")),
      ElementsAre("a/family:0.0", "a/family:3.0"));
  EXPECT_THAT(
      names(entries_of(R"({"name": "a", "cpu_time": 1, "threads": 1}, {"name": "a", "cpu_time": 2, "threads": 8})")),
      ElementsAre("a/threads:1", "a/threads:8"));
}

TEST(Gbench, ALabelIsAConditionUnlessRepetitionsDiffer) {
  const auto one = entries_of(R"({"name": "a", "cpu_time": 1, "label": "x", "family_index": 0})");
  EXPECT_EQ(one.at(0).name, "a");
  EXPECT_EQ(one[0].conditions.at("label"), "x");
  const auto two = entries_of(R"({"name": "a", "cpu_time": 1, "label": "1 s", "family_index": 0},
                             {"name": "a", "cpu_time": 2, "label": "2 s", "family_index": 0})");
  ASSERT_EQ(two.size(), 1u);
  EXPECT_TRUE(two[0].conditions.empty());
  EXPECT_EQ(two[0].values.size(), 2u);
}

constexpr const char* aggregates = R"(
  {"name": "a_mean", "run_name": "a", "run_type": "aggregate", "aggregate_name": "mean", "repetitions": 10, "cpu_time": 151, "iterations": 10},
  {"name": "a_median", "run_name": "a", "run_type": "aggregate", "aggregate_name": "median", "repetitions": 10, "cpu_time": 150, "iterations": 10},
  {"name": "a_stddev", "run_name": "a", "run_type": "aggregate", "aggregate_name": "stddev", "repetitions": 10, "cpu_time": 2, "iterations": 10})";

TEST(Gbench, OnlyAggregatesAreTheMedianWithAnInterval) {
  const auto figures = entries_of(aggregates);
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "a");
  EXPECT_DOUBLE_EQ(figures[0].values.at(0), 150e-9);
  ASSERT_TRUE(figures[0].ci95);
  // t of 9 degrees of freedom is 2.262; a median's error is 1.253 of a mean's.
  EXPECT_NEAR(figures[0].ci95->high - 150e-9, 2.262 * 1.2533 * 2e-9 / std::sqrt(10), 0.02e-9);
  EXPECT_EQ(figures[0].labels.at("aggregate"), "median");
  const auto both = entries_of(std::string(aggregates) +
                               R"(, {"name": "a", "run_name": "a", "run_type": "iteration", "cpu_time": 7})");
  ASSERT_EQ(both.size(), 1u) << "with repetitions, aggregates say nothing more";
  EXPECT_DOUBLE_EQ(both[0].values.at(0), 7e-9);
}

TEST(Gbench, OldFilesTellAggregatesByTheirNames) {
  EXPECT_THAT(
      names(entries_of(
          R"({"name": "a", "cpu_time": 1}, {"name": "a_mean", "cpu_time": 1}, {"name": "a_stddev", "cpu_time": 0},
                              {"name": "find_median", "cpu_time": 3})")),
      ElementsAre("a", "find_median"));
  EXPECT_THAT(
      names(entries_of(
          R"({"name": "b_mean", "cpu_time": 1}, {"name": "b_median", "cpu_time": 2}, {"name": "b_stddev", "cpu_time": 0})")),
      ElementsAre("b"));
  EXPECT_THAT(
      names(entries_of(R"({"name": "c/8", "cpu_time": 1}, {"name": "c_BigO", "cpu_coefficient": 1, "cpu_time": 1})")),
      ElementsAre("c/8"));
}

TEST(Gbench, TheContextIsKept) {
  const ForeignFile file = read_gbench(json_of(R"({"name": "a", "cpu_time": 1})", R"({
      "date": "2026-01-31T12:00:00+01:00", "host_name": "ci-7", "executable": "/tmp/x/bench", "num_cpus": 4, "mhz_per_cpu": 2445,
      "cpu_scaling_enabled": false, "library_build_type": "debug", "library_version": "v1.9.4", "load_avg": [1],
      "caches": [{"type": "Unified", "level": 3, "size": 33554432, "num_sharing": 8}], "git_commit": "abc", "branch": "main",
      "compiler": "gcc 14"})"),
                                       "f");
  const ForeignContext& about = file.runs.at(0).about;
  EXPECT_EQ(about.time, "2026-01-31T11:00:00Z");
  EXPECT_EQ(about.machine, "ci-7");
  EXPECT_EQ(about.commit, "abc");
  EXPECT_EQ(about.facts.at("branch"), "main");
  EXPECT_EQ(about.facts.at("compiler"), "gcc 14");
  EXPECT_EQ(about.facts.at("num_cpus"), "4");
  EXPECT_EQ(about.facts.at("executable"), "bench");
  EXPECT_FALSE(about.facts.contains("load_avg"));
  EXPECT_EQ(text_member(about.environment, "/cpu/name"), "4 CPUs at 2.4 GHz, L3 32 MiB");
  EXPECT_EQ(text_member(about.environment, "/build_type"), "debug");
  EXPECT_EQ(text_member(about.environment, "/libraries/benchmark"), "v1.9.4");
}

TEST(Gbench, ACommitKeyMustBeThere) {
  const std::string text = json_of(R"({"name": "a", "cpu_time": 1})", R"({"rev": "abc"})");
  EXPECT_EQ(read_gbench(text, "f", "rev").runs.at(0).about.commit, "abc");
  EXPECT_THROW(read_gbench(text, "f", "revision"), UsageError);
}

}  // namespace
}  // namespace assay
