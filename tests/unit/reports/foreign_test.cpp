// Formats of other tools but Google Benchmark and nccl-tests; the files have their shape, the figures are made up.
#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/unit/reports/foreign_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

namespace assay::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Pytest, MachineBranchAndRoundsAreKept) {
  const ForeignFile file =
      read_format("pytest-benchmark", R"({"datetime": "2026-01-31T12:00:00+00:00", "machine_info": {
      "node": "box", "machine": "x86_64", "cpu": {"brand_raw": "AMD EPYC 7763", "count": 4}, "python_version": "3.12.1",
      "system": "Linux", "release": "6.8"}, "commit_info": {"id": "abc", "branch": "main", "dirty": true},
    "benchmarks": [{"fullname": "t.py::a", "stats": {"data": [1, 2, 4], "rounds": 3}},
                   {"fullname": "t.py::b", "stats": {"median": 10, "q1": 9, "q3": 11, "rounds": 100}}]})");
  const ForeignContext& about = file.runs.at(0).about;
  EXPECT_EQ(about.commit, "abc");
  EXPECT_EQ(about.facts.at("branch"), "main");
  EXPECT_EQ(text_member(about.environment, "/cpu/brand"), "AMD EPYC 7763");
  EXPECT_EQ(text_member(about.environment, "/libraries/python"), "3.12.1");
  EXPECT_EQ(text_member(about.environment, "/os/kernel"), "6.8");
  const auto figures = file.figures();
  EXPECT_EQ(figures.at(0).labels.at("rounds"), "3");
  ASSERT_TRUE(figures.at(1).ci95);
  EXPECT_NEAR(figures[1].ci95->high, 10 + 1.96 * 1.2533 * 1.4826 / 10, 0.01);
}

TEST(Superbench, RulesTellDirections) {
  ForeignInput input = foreign_input(R"({"node": "a", "x/odd_metric:0": 5, "x/latency_sign": 6, "x/other": 7})"
                                     "\n");
  input.rules_file = "rules.yaml";
  input.rules = R"(version: v0.11
superbench:
  rules:
    kernel:
      function: variance
      criteria: "lambda x:x>0.05"
      categories: Kernel
      metrics:
        - x/odd_metric:\d+   
    speed:
      function: variance
      criteria: lambda x:x<-0.05
      metrics:
      - "x/latency_.*"
    codes:
      function: value
      criteria: lambda x:x>0
      metrics:
        - .*
)";
  const auto figures = read_format("superbench", input).figures();
  EXPECT_EQ(figure_of(figures, "x/odd_metric:0", "value").better, Better::lower);
  EXPECT_FALSE(figure_of(figures, "x/odd_metric:0", "value").guessed);
  EXPECT_EQ(figure_of(figures, "x/latency_sign", "value").better, Better::higher);
  EXPECT_TRUE(figure_of(figures, "x/other", "value").guessed);
  input = foreign_input(R"({"node": "a", "x": 5})");
  input.rules = "nothing: here\n", input.rules_file = "rules.yaml";
  EXPECT_THROW(read_format("superbench", input), UsageError);
  input.rules = "r:\n  function: variance\n  criteria: lambda x:x>0\n  metrics:\n  - \"a(\"\n";
  EXPECT_THROW(read_format("superbench", input), UsageError);
}

TEST(Superbench, AMachineTwiceIsTwoRuns) {
  const ForeignFile file = read_format("superbench", std::string(R"({"node": "a", "x": 5})") + "\n" +
                                                         R"({"node": "a", "x": 6})"
                                                         "\n");
  EXPECT_EQ(file.runs.size(), 2u);
  EXPECT_THAT(file.remarks, ElementsAre(HasSubstr("more than once")));
}

TEST(Nvbandwidth, MatricesAreCases) {
  const ForeignFile file =
      read_format("nvbandwidth", R"json({"nvbandwidth": {"CUDA Runtime Version": 12080, "Driver Version": "570.86",
    "GPU Device list": ["0: NVIDIA H100 80GB HBM3 (00000000:0F:00)", "1: NVIDIA H100 80GB HBM3 (00000000:1F:00)"], "version": "v0.8",
    "testcases": [
      {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
       "bandwidth_matrix": [["55.5", "55.25"]], "sum": 110.75},
      {"name": "device_to_device", "status": "Passed", "bandwidth_description": "GPU(row) <- GPU(column) bandwidth (GB/s)",
       "bandwidth_matrix": [["N/A", "400"], ["401", "N/A"]]},
      {"name": "latency", "status": "Passed", "bandwidth_description": "memory latency SM CPU(row) <-> GPU(column) (ns)",
       "bandwidth_matrix": [["600", "610"]], "sum": 1210},
      {"name": "multinode", "status": "Waived"}, {"name": "broken", "status": "Error", "error": "out of memory"},
      {"name": "cut", "status": "Running"}]}})json");
  EXPECT_THAT(values_of(file),
              UnorderedElementsAre(Pair("host_to_device_memcpy_ce bandwidth", 110.75e9),
                                   Pair("host_to_device_memcpy_ce/row=0/column=0 bandwidth", 55.5e9),
                                   Pair("host_to_device_memcpy_ce/row=0/column=1 bandwidth", 55.25e9),
                                   Pair("device_to_device/row=0/column=1 bandwidth", 400e9),
                                   Pair("device_to_device/row=1/column=0 bandwidth", 401e9),
                                   Pair("latency/row=0/column=0 latency", testing::DoubleNear(600e-9, 1e-15)),
                                   Pair("latency/row=0/column=1 latency", testing::DoubleNear(610e-9, 1e-15))));
  const auto figures = file.figures();
  EXPECT_EQ(figure_of(figures, "multinode", "").status, Status::skipped);
  EXPECT_EQ(figure_of(figures, "broken", "").reason, "out of memory");
  EXPECT_EQ(figure_of(figures, "cut", "").status, Status::error);
  const Json& environment = file.runs.at(0).about.environment;
  EXPECT_EQ(environment.at("gpus").size(), 2u);
  EXPECT_EQ(text_member(environment.at("gpus").at(0), "/name"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(text_member(environment, "/libraries/cuda"), "12.8");
}

TEST(Bmf, MeasuresAreMetrics) {
  const ForeignFile file = read_format(
      "bmf", R"({"a": {"latency": {"value": 5, "lower_value": 4, "upper_value": 7}, "throughput": {"value": 2}},
    "b": {"odd": {}}, "c": 5})");
  EXPECT_THAT(values_of(file), UnorderedElementsAre(Pair("a latency", 5), Pair("a throughput", 2)));
  const auto figures = file.figures();
  EXPECT_EQ(figure_of(figures, "a", "latency").better, Better::lower);
  EXPECT_EQ(figure_of(figures, "a", "latency").ci95->high, 7);
  EXPECT_EQ(file.not_read, 2u);
  EXPECT_THROW(read_format("bmf", "{}"), UsageError);
  EXPECT_THROW(read_format("bmf", "[]"), UsageError);
}

TEST(Asv, BothFormsAreRead) {
  const char* const context = R"("commit_hash": "abc", "env_name": "virtualenv-py3.12", "date": 1767225600000,
    "params": {"machine": "box", "cpu": "AMD EPYC", "os": "Linux", "python": "3.12", "ram": "64"}, "requirements": {"numpy": "2.1"})";
  const ForeignFile second =
      read_format("asv", fmt::format(R"({{{}, "result_columns": ["result", "params", "version", "started_at",
    "stats_ci_99_a", "stats_ci_99_b", "samples"], "results": {{
      "s.time_a": [[0.5], [], "v", 1767312000000, [0.4], [0.6]], "s.peakmem_b": [[1024], []], "s.track_c": [[3], []],
      "s.time_p": [[1, null, 3, 4], [["10", "20"], ["'x'", "'y'"]]],
      "s.time_s": [[2], [], "v", 1767312000000, null, null, [[1, 2, 3]]]}}}})",
                                     context));
  EXPECT_THAT(values_of(second), UnorderedElementsAre(Pair("s.time_a time", 0.5), Pair("s.peakmem_b memory", 1024),
                                                      Pair("s.track_c value", 3), Pair("s.time_p(10, 'x') time", 1),
                                                      Pair("s.time_p(20, 'x') time", 3),
                                                      Pair("s.time_p(20, 'y') time", 4), Pair("s.time_s time", 1)));
  const ForeignContext& about = second.runs.at(0).about;
  EXPECT_EQ(about.time, "2026-01-02T00:00:00Z") << "when it was measured, not the date of the commit";
  EXPECT_EQ(about.machine, "box");
  EXPECT_EQ(about.commit, "abc");
  EXPECT_EQ(text_member(about.environment, "/libraries/numpy"), "2.1");
  const auto figures = second.figures();
  EXPECT_EQ(figure_of(figures, "s.time_a", "time").ci95->low, 0.4);
  EXPECT_EQ(figure_of(figures, "s.time_p(10, 'y')", "").status, Status::error);
  EXPECT_EQ(figure_of(figures, "s.time_s", "time").values.size(), 3u);
  const ForeignFile first = read_format(
      "asv",
      fmt::format(R"({{{}, "results": {{"a.time_a": 0.5, "a.time_b": {{"result": [1, 2], "params": [["1", "2"]]}}}}}})",
                  context));
  EXPECT_THAT(values_of(first), UnorderedElementsAre(Pair("a.time_a time", 0.5), Pair("a.time_b(1) time", 1),
                                                     Pair("a.time_b(2) time", 2)));
  EXPECT_EQ(first.runs.at(0).about.time, "2026-01-01T00:00:00Z");
}

TEST(Hyperfine, TimesAreSamplesAndExitCodesChecks) {
  const auto figures = read_format("hyperfine", R"({"results": [
    {"command": "sort x", "times": [1, 2, 3], "exit_codes": [0, 0, 0], "parameters": {"n": "4"}}, {"command": "bad", "times": [1], "exit_codes": [3]}]})")
                           .figures();
  EXPECT_THAT(figure_of(figures, "sort x", "time").values, ElementsAre(1, 2, 3));
  EXPECT_EQ(figure_of(figures, "sort x", "time").conditions.at("n"), "4");
  EXPECT_EQ(figure_of(figures, "bad", "time").status, Status::error);
}

TEST(Otava, AColumnIsASeries) {
  const ForeignFile file =
      read_format("otava",
                  "time,commit,branch,latency,rate,note\n2026-01-01T00:00:00+01:00,c1,main,5,100,x\n"
                  "2026-01-02,c2,main,6,,y\n2026-01-03,c3,main,odd,101,z\n");
  ASSERT_EQ(file.runs.size(), 3u);
  EXPECT_EQ(file.runs[0].about.time, "2025-12-31T23:00:00Z");
  EXPECT_EQ(file.runs[0].about.commit, "c1");
  EXPECT_EQ(file.runs[0].about.facts, (std::map<std::string, std::string>{{"branch", "main"}, {"note", "x"}}));
  EXPECT_EQ(file.not_read, 1u);
  const auto figures = file.figures();
  EXPECT_EQ(figures.at(0).better, Better::lower);
  EXPECT_EQ(figures.at(1).better, Better::higher);
  EXPECT_EQ(read_format("otava", "time;a\n2026-01-01;5\n").figures().at(0).values.at(0), 5);
  EXPECT_THROW(read_format("otava", "a,b\n1,2\n"), UsageError);
  EXPECT_THROW(read_format("otava", "time,b\nnever,2\n"), UsageError);
}

const std::string csv = "time,machine,case,metric,unit,better,value,low,high,ranks,host,device\n";

TEST(Csv, ItsTimesAreReadAndItsWorldsApart) {
  const ForeignFile file = read_format("csv", csv +
                                                  "2026-01-01T00:00:00+01:00,m,a,rate,1,higher,5,4,6,8,n1,cuda\n"
                                                  "2026-01-01T00:00:00+01:00,m,a,rate,1,higher,7,,,16,n1,cuda\n");
  EXPECT_EQ(file.runs.at(0).about.time, "2025-12-31T23:00:00Z");
  const auto figures = file.figures();
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].world->ranks, 8);
  EXPECT_EQ(figures[0].ci95->high, 6);
  EXPECT_EQ(figures[1].world->ranks, 16);
  try {
    read_format("csv", csv + "noon,m,a,rate,1,higher,5,,,,,\n");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("f.log: line 2: the time \"noon\" cannot be read"));
  }
}

TEST(Nvbandwidth, AnErrorBeforeTheFirstTestIsOfTheWhole) {
  const auto figures = read_format("nvbandwidth", R"({"nvbandwidth": {"error": "no GPU", "testcases": []}})").figures();
  EXPECT_EQ(figure_of(figures, "nvbandwidth", "").reason, "no GPU");
}

TEST(Nvbandwidth, TheTextThatItPrintsIsRead) {
  const std::string text = R"(nvbandwidth Version: v0.6
Built from Git version:

CUDA Runtime Version: 12040
CUDA Driver Version: 12040
Driver Version: 550.54.15

Device 0: NVIDIA GH200 480GB (00000009:01:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.20     55.25

SUM host_to_device_memcpy_ce 110.45
COEFFICIENT_OF_VARIATION host_to_device_memcpy_ce 0.00

Waived:
Waived:
Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    276.07
 1    276.36

SUM device_to_device_memcpy_read_ce 552.43

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0
 0    772.50

Running device_local_copy.
[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc(...)
Running multinode_copy.
Waived: one node only
Running cut_off.
)";
  for (const std::string prefix : {"", "[1,0]<stdout>:", "n1 0: "}) {
    std::string log;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) log += prefix + line + "\r\n";
    const ForeignFile file = read_format("nvbandwidth", log);
    EXPECT_THAT(values_of(file),
                UnorderedElementsAre(
                    Pair("host_to_device_memcpy_ce bandwidth", 110.45e9),
                    Pair("host_to_device_memcpy_ce/row=0/column=0 bandwidth", 55.2e9),
                    Pair("host_to_device_memcpy_ce/row=0/column=1 bandwidth", 55.25e9),
                    Pair("device_to_device_memcpy_read_ce bandwidth", 552.43e9),
                    Pair("device_to_device_memcpy_read_ce/row=0/column=1 bandwidth", 276.07e9),
                    Pair("host_device_latency_sm/row=0/column=0 latency", testing::DoubleNear(772.5e-9, 1e-15))))
        << prefix;
    EXPECT_EQ(file.not_read, 1u);
    EXPECT_THAT(file.first_not_read, HasSubstr("276.36"));
    EXPECT_THAT(file.remarks, ElementsAre(HasSubstr("2 tests waived, which nvbandwidth does not name")));
    const auto figures = file.figures();
    EXPECT_THAT(figure_of(figures, "device_local_copy", "").reason, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    EXPECT_EQ(figure_of(figures, "multinode_copy", "").status, Status::skipped);
    EXPECT_EQ(figure_of(figures, "cut_off", "").reason, "it printed no figure");
    const Json& environment = file.runs.at(0).about.environment;
    EXPECT_EQ(text_member(environment.at("gpus").at(0), "/name"), "NVIDIA GH200 480GB");
    EXPECT_EQ(text_member(environment, "/libraries/cuda"), "12.4");
    EXPECT_EQ(text_member(environment, "/drivers/nvidia"), "550.54.15");
  }
  try {
    read_format("nvbandwidth", "no such table\n");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("neither nvbandwidth's JSON (-j) nor the text that it prints"));
  }
}

TEST(Csv, AnIntervalUpsideDownIsRefused) {
  EXPECT_THROW(read_format("csv", csv + "2026-01-01,m,a,rate,1,higher,5,6,4,,,\n"), UsageError);
}

// Quotes and line ends may fall on the border of two parts that are read.
TEST(Csv, PartsMayBeCutAnywhere) {
  const std::string text =
      csv + "2026-01-01,m,\"a \"\"b\"\", c\nd\",rate,1,higher,5,,,,,\r\n2026-01-02,m,e,rate,1,higher,6,,,,,";
  for (std::size_t size = 1; size < 12; ++size) {
    std::string_view rest = text;
    const ForeignInput input{"f", [&](std::string& to) {
                               to += rest.substr(0, size);
                               const bool any = !rest.empty();
                               rest.remove_prefix(std::min(size, rest.size()));
                               return any;
                             }};
    EXPECT_THAT(values_of(read_format("csv", input)),
                UnorderedElementsAre(Pair("a \"b\", c\nd rate", 5), Pair("e rate", 6)))
        << size;
  }
}

TEST(Directions, CanBeSetByNameAndAreListed) {
  std::vector<ForeignFile> files;
  files.push_back(read_format("superbench", R"({"node": "a", "x/odd:0": 5, "x/latency": 6, "y/latency": 6})"));
  EXPECT_EQ(guessed_directions(files), "guessed: higher is better for odd\nguessed: lower is better for latency\n");
  set_directions(files, {{"odd", Better::lower}, {"y/latency", Better::higher}});
  EXPECT_EQ(guessed_directions(files), "guessed: lower is better for latency\n");
  EXPECT_EQ(figure_of(files[0].figures(), "x/odd:0", "value").better, Better::lower);
  EXPECT_THROW(set_directions(files, {{"nothing", Better::lower}}), UsageError);
}

TEST(Import, EqualInputGivesEqualRuns) {
  const ForeignFile file = read_format("csv", csv + "2026-01-01,m,imported/a,rate,1,higher,5,,,,,\n");
  const auto run = [&] {
    std::vector<Record> records;
    const Json json =
        import_run(file, file.runs.at(0), "csv", "f", [&](Record record) { records.push_back(std::move(record)); });
    EXPECT_EQ(records.at(0).key, "imported/a") << "once";
    return json;
  };
  EXPECT_EQ(run(), run());
  EXPECT_EQ(run().at("environment").at("hostnames"), Json::array({"m"}));
}

}  // namespace
}  // namespace assay::report
