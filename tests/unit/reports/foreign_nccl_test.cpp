// Logs and JSON in the form of nccl-tests and rccl-tests, of many versions and launchers; the figures are made up.
#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/unit/reports/foreign_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace assay::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::string nccl_header =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";

std::string row(int bytes, int busbw, const std::string& wrong = "0", const std::string& start = "  ") {
  return fmt::format("{}{} {} float sum -1 100.0 1.00 {}.00 {} 110.0 1.00 {}.00 0\n", start, bytes, bytes / 4, busbw,
                     wrong, busbw + 1);
}

std::vector<ForeignFigure> figures(const std::string& text) { return read_format("nccl-tests", text).figures(); }

std::map<std::string, double> busbw(const std::string& text) {
  std::map<std::string, double> found;
  for (const auto& [name, value] : values_of(read_format("nccl-tests", text)))
    if (name.ends_with(" busbw")) found[name.substr(0, name.size() - 6)] = value / 1e9;
  return found;
}

TEST(NcclLog, PrefixesOfLaunchersAreStripped) {
  for (const std::string prefix :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", "(head, rank=0, pid=12) ", "2026-01-31T12:00:00.5Z ", "0: ", "node1 | ",
        "[2026-01-31 12:00:00,123] ", "2026-01-31 12:00:00 ", "2026-01-31T12:00:00Z stdout F ",
        "[pod/worker-0/main] [1,0]<stdout>:", "12:00:01.5 ", "[0] ", "x3005c0s13b0n0 0: "}) {
    std::string text;
    for (const std::string& line : {std::string("# Collective test starting: all_reduce_perf\n"),
                                    nccl_header.substr(0, nccl_header.find('\n') + 1), row(8, 3)})
      text += prefix + line;
    EXPECT_THAT(busbw(text), UnorderedElementsAre(Pair("all_reduce/float/sum/bytes=8/out_of_place", 3),
                                                  Pair("all_reduce/float/sum/bytes=8/in_place", 4)))
        << prefix;
  }
}

TEST(NcclLog, TheTimeOfTheFirstLineIsTheRuns) {
  const ForeignFile file =
      read_format("nccl-tests", "2026-01-31T12:00:00+01:00 " + nccl_header + "2026-01-31T12:00:01+01:00 " + row(8, 1));
  EXPECT_EQ(file.runs.at(0).about.time, "2026-01-31T11:00:00Z");
}

TEST(NcclLog, ColumnsComeFromTheHeaderInAnyOrder) {
  EXPECT_THAT(busbw("# size busbw algbw time #wrong type redop\n  8 5.00 4.00 10.0 0 float sum\n"),
              ElementsAre(Pair("f/float/sum/bytes=8/out_of_place", 5)));
  EXPECT_THAT(
      busbw("# size(KB) count type redop time(ms) algbw(MB/s) busbw(MB/s) #wrong\n 8 2 float sum 10.0 4000 5000 0\n"),
      ElementsAre(Pair("f/float/sum/bytes=8000/out_of_place", 5)));
  EXPECT_THROW(figures("# size count type redop time algbw busbw(furlongs)\n"), UsageError);
  const auto kept = figures(
      "# size count type redop root time algbw busbw #wrong i_min channels\n 8 2 float sum -1 10 1 2 0 9.5 16\n");
  EXPECT_EQ(kept.at(0).labels.at("channels"), "16");
}

TEST(NcclLog, UnitsBelowTheHeaderCount) {
  const std::string text =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (ms)  (MB/s)  (MB/s)       \n"
      "           8             2     float     sum      -1     10.0    1000    2000      0\n";
  EXPECT_THAT(busbw(text), ElementsAre(Pair("f/float/sum/bytes=8/out_of_place", 2)));
}

TEST(NcclLog, OldTablesHaveNoRootAndAnError) {
  const auto old = figures(
      "#  size count type redop time algbw busbw error time algbw busbw error\n"
      "  8 2 float sum 10.0 1.0 2.0 1e-06 11.0 1.0 3.0 N/A\n");
  EXPECT_EQ(old.at(0).values.at(0), 2e9);
  EXPECT_FALSE(old[0].check) << "an error is rounding";
  EXPECT_THAT(
      busbw("# size count type redop time algbw busbw error time algbw busbw error\n"
            "  8 2 float   10.0 1.0 2.0 N/A 11.0 1.0 3.0 N/A\n"),
      UnorderedElementsAre(Pair("f/float/none/bytes=8/out_of_place", 2), Pair("f/float/none/bytes=8/in_place", 3)));
  EXPECT_THAT(busbw("# size count type root time algbw busbw error\n  8 2 float 3 10.0 1.0 2.0 N/A\n"),
              ElementsAre(Pair("f/float/none/root=3/bytes=8/out_of_place", 2)));
}

TEST(NcclLog, WrongElementsAreAFailureAndNoneAPassedCheck) {
  const auto rows = figures(nccl_header + row(8, 1, "0") + row(16, 1, "7") + row(32, 1, "N/A"));
  const auto& right = figure_of(rows, "f/float/sum/bytes=8/out_of_place", "busbw");
  ASSERT_TRUE(right.check);
  EXPECT_TRUE(right.check->passed);
  const auto& wrong = figure_of(rows, "f/float/sum/bytes=16/out_of_place", "busbw");
  EXPECT_EQ(wrong.status, Status::failed);
  EXPECT_EQ(wrong.reason, "7 wrong elements");
  EXPECT_FALSE(figure_of(rows, "f/float/sum/bytes=32/out_of_place", "busbw").check);
}

TEST(NcclLog, ABrokenRowIsJoined) {
  const std::map<std::string, double> whole = busbw(nccl_header + row(8, 3));
  const std::string start = "  8 2 float sum -1", out = " 100.0 1.00 3.00 0", in = " 110.0 1.00 4.00 0\n";
  const std::string debug = "n1:21:35 [0] NCCL INFO Channel 00 : 0 1 2\n";
  for (const std::string& text :
       {start + "\n" + out + in, start + debug + debug + out + in, start + out + debug + in,
        start + " " + debug + out + "\n" + in, start + "[0] " + debug + out + debug + debug + in,
        "[0] " + start + "[0] " + debug + "[0]" + out + "\n[0]" + in,
        start + "\nn1:21:35 [0] NCCL INFO opened " + out + in})
    EXPECT_EQ(busbw(nccl_header + text), whole) << text;
}

TEST(NcclLog, APartThatNeverCameIsCounted) {
  const ForeignFile file = read_format(
      "nccl-tests", nccl_header + "  8 2 float sum -1 100.0 1.00 3.00 0\nlost\n" + row(16, 5) + "  32 8 float\n");
  EXPECT_EQ(values_of(file).at("f/float/sum/bytes=8/out_of_place busbw"), 3e9);
  EXPECT_FALSE(values_of(file).contains("f/float/sum/bytes=8/in_place busbw"));
  EXPECT_EQ(file.not_read, 3u);
  EXPECT_THAT(file.first_not_read, HasSubstr("line 4: lost"));
}

TEST(NcclLog, OnlyInPlaceIsSeenByTheGap) {
  EXPECT_THAT(busbw(nccl_header + "  8 2 float sum -1                                   110.0 1.00 4.00 0\n"),
              ElementsAre(Pair("f/float/sum/bytes=8/in_place", 4)));
}

TEST(NcclLog, SeveralTablesAreSeveralCases) {
  const auto named = busbw("# Collective test starting: all_gather_perf\n" + nccl_header + row(8, 1) +
                           "# Collective test concluded: all_gather_perf\n# Collective test starting: alltoall_perf\n" +
                           nccl_header + row(8, 5));
  EXPECT_EQ(named.at("all_gather/float/sum/bytes=8/out_of_place"), 1);
  EXPECT_EQ(named.at("alltoall/float/sum/bytes=8/out_of_place"), 5);
  const auto echoed = busbw("+ mpirun /opt/build/all_gather_perf -b 8\n" + nccl_header + row(8, 1) +
                            "+ ./reduce_scatter_perf\n" + nccl_header + row(8, 5));
  EXPECT_EQ(echoed.at("reduce_scatter/float/sum/bytes=8/out_of_place"), 5);
  const auto unnamed = busbw(nccl_header + row(8, 1) + nccl_header + row(8, 5));
  EXPECT_EQ(unnamed.at("f/float/sum/bytes=8/out_of_place"), 1);
  EXPECT_EQ(unnamed.at("f/table=2/float/sum/bytes=8/out_of_place"), 5);
  EXPECT_THAT(busbw(nccl_header + "  8 2 float sum 0 1 1 2 0 1 1 3 0\n  8 2 float sum 1 1 1 4 0 1 1 5 0\n").size(), 4u)
      << "roots";
}

TEST(NcclLog, RanksHostsAndGpusAreTheWorld) {
  const std::string devices =
      "# Using devices\n"
      "#  Rank  0 Group  0 Pid   1887 on   worker-1 device  0 [0000:8d:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid   1894 on   worker-0 device  1 [0000:b7:00] NVIDIA H100 80GB HBM3\n";
  const ForeignFile file = read_format("nccl-tests", devices + nccl_header + row(8, 1));
  const auto world = file.figures().at(0).world;
  ASSERT_TRUE(world);
  EXPECT_EQ(world->ranks, 2);
  EXPECT_EQ(world->nodes, 2);
  EXPECT_EQ(world->device, "cuda");
  EXPECT_EQ(world->known.at(1).host, "worker-0");
  EXPECT_EQ(world->known.at(1).device, "NVIDIA H100 80GB HBM3");
  const Json& environment = file.runs.at(0).about.environment;
  EXPECT_EQ(environment.at("hostnames"), (Json{"worker-0", "worker-1"}));
  EXPECT_EQ(environment.at("gpus").at(0).at("name"), "NVIDIA H100 80GB HBM3");
  // Two worlds in one log are two cases.
  const auto both =
      figures(devices + nccl_header + row(8, 1) +
              "# Using devices\n#  Rank 0 Pid 1 on worker-0 device 0 [0x8d] NVIDIA H100\n" + nccl_header + row(8, 9));
  std::set<int> ranks;
  for (const ForeignFigure& one : both) ranks.insert(one.world->ranks);
  EXPECT_THAT(ranks, ElementsAre(1, 2));
  EXPECT_EQ(figures("# nThread 1 nGpus 8 minBytes 8 graph: 3\n" + nccl_header + row(8, 1)).at(0).world->ranks, 8);
  EXPECT_EQ(figures("# nThread 1 nGpus 8 minBytes 8 graph: 3\n" + nccl_header + row(8, 1)).at(0).conditions.at("graph"),
            "3");
}

// A number of ranks or GPUs that cannot be is refused or said, never cut.
TEST(NcclLog, RanksThatCannotBeAreRefusedOrSaid) {
  const auto banner = [&](const std::string& gpus) {
    return "# nThread 2 nGpus " + gpus + " minBytes 8\n" + nccl_header;
  };
  EXPECT_EQ(figures(banner("100") + row(8, 1)).at(0).world->ranks, 200);
  EXPECT_THAT(test::refusal([&] { figures(banner("1000000") + row(8, 1)); }),
              HasSubstr("line 1: nThread x nGpus is 2e+06: must be a whole number from 1 to 1000000"));
  EXPECT_THAT(test::refusal([&] { figures(banner("x") + row(8, 1)); }), HasSubstr("nThread x nGpus is 0"));

  const std::string ranks =
      "#  Rank  99 Pid 1 on n1 device 0 [0000:8d:00] GPU\n#  Rank 1000000 Pid 1 on n1 device 1 [0000:8e:00] GPU\n";
  const ForeignFile file = read_format("nccl-tests", ranks + nccl_header + row(8, 1));
  EXPECT_EQ(file.runs.at(0).about.environment.at("gpus").size(), 1u);
  EXPECT_THAT(file.remarks,
              testing::Contains("100 ranks a host are more than 64 GPUs: only those that are named are described"));
  EXPECT_THAT(file.first_not_read, HasSubstr("line 2: #  Rank 1000000"));
}

TEST(NcclLog, RanksThatComeTwiceAreSaid) {
  const std::string rank = "#  Rank  0 Pid 1 on n1 device 0 [0x8d] GPU\n";
  EXPECT_THAT(read_format("nccl-tests", rank + rank + nccl_header + row(8, 1)).remarks,
              ElementsAre(HasSubstr("rank 0 comes twice")));
}

TEST(NcclLog, AFailureIsOfItsTest) {
  const auto both = figures("# Collective test starting: all_gather_perf\n" + nccl_header + row(8, 1) +
                            "# Out of bounds values : 3 FAILED\n# Collective test concluded: all_gather_perf\n"
                            "# Collective test starting: alltoall_perf\n" +
                            nccl_header + row(8, 5) + "# Out of bounds values : 0 OK\n");
  EXPECT_EQ(figure_of(both, "all_gather/float/sum/bytes=8/out_of_place", "busbw").status, Status::failed);
  EXPECT_EQ(figure_of(both, "alltoall/float/sum/bytes=8/out_of_place", "busbw").status, Status::ok);
  const auto broke = figures("+ ./alltoall_perf\nn1: Test NCCL failure common.cu:961 'unhandled cuda error'\n");
  ASSERT_EQ(broke.size(), 1u);
  EXPECT_EQ(broke[0].name, "alltoall");
  EXPECT_EQ(broke[0].status, Status::error);
}

TEST(NcclLog, LinesThatAreNotUnderstoodAreCounted) {
  const ForeignFile file =
      read_format("nccl-tests", "warming up\n" + nccl_header + "n1:1:2 [0] NCCL INFO x\n" + row(8, 1) + "bye\n");
  EXPECT_EQ(file.not_read, 2u);
  EXPECT_EQ(file.first_not_read, "line 1: warming up");
  EXPECT_THROW(figures("hello\n"), UsageError);
}

TEST(NcclLog, RcclTestsHaveTheSameTables) {
  const ForeignFile file =
      read_format("rccl-tests", "#  Rank  0 Group  0 Pid  7 on n1 device  0 [0000:0c:00] AMD Instinct MI300X\n" +
                                    nccl_header + row(8, 1));
  EXPECT_EQ(file.figures().at(0).world->device, "hip");
}

const std::string nccl_json =
    R"({"start_time": "2026-07-01 03:00:00", "args": ["/x/all_reduce_perf"], "nccl_version": 22907,
  "env": ["NCCL_ALGO=Ring", "TOKEN=secret"], "config": {"nthreads": 1, "ngpus": 1, "devices": [
    {"rank": 0, "hostname": "n7", "device_info": "NVIDIA H100"}, {"rank": 1, "hostname": "n8", "device_info": "NVIDIA H100"}]},
  "results": [{"size": 8, "type": "float", "redop": "sum", "root": "    -1", "experiment_name": "all_reduce",
    "out_of_place": {"time": 20, "alg_bw": 50, "bus_bw": 80, "nwrong": 0},
    "out_of_place_per_iter": {"times_us": [18, 19, 20, 20, 20, 20, 21, 22]},
    "in_place": {"time": 20, "alg_bw": "nan", "bus_bw": 80, "nwrong": null}}], "out_of_bounds": {"count": 0, "okay": "true"}})";

TEST(NcclJson, TimesHostsAndSamples) {
  const ForeignFile file = read_format("nccl-tests", nccl_json);
  const ForeignContext& about = file.runs.at(0).about;
  EXPECT_EQ(about.time, "2026-07-01T03:00:00Z");
  EXPECT_THAT(file.remarks, ElementsAre(HasSubstr("no zone")));
  EXPECT_EQ(about.environment.at("hostnames"), (Json{"n7", "n8"}));
  EXPECT_EQ(about.environment.at("libraries").at("nccl"), "2.29.7");
  EXPECT_EQ(about.facts, (std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}}));
  const auto figures = file.figures();
  const std::string name = "all_reduce/float/sum/bytes=8/out_of_place";
  const ForeignFigure& busbw = figure_of(figures, name, "busbw");
  EXPECT_EQ(busbw.values.at(0), 80e9);
  ASSERT_TRUE(busbw.ci95);
  EXPECT_LE(busbw.ci95->low, 80e9);
  EXPECT_GE(busbw.ci95->high, 80e9);
  EXPECT_EQ(figure_of(figures, name, "time").values.size(), 8u);
  EXPECT_EQ(busbw.world->nodes, 2);
  EXPECT_EQ(figure_of(figures, "all_reduce/float/sum/bytes=8/in_place", "").status, Status::error);
}

TEST(NcclJson, FalseIsWrittenAsText) {
  std::string text = nccl_json;
  text.replace(text.find(R"("okay": "true")"), 14, R"("okay": "false")");
  EXPECT_EQ(
      figure_of(read_format("nccl-tests", text).figures(), "all_reduce/float/sum/bytes=8/out_of_place", "busbw").status,
      Status::failed);
}

}  // namespace
}  // namespace assay::report
