// What parts allow, on made-up machines: bare metal, one with an empty channel, a virtual one.
#include "reports/bounds/bounds.h"

#include "harness/json/json.h"
#include "harness/machine/hardware.h"
#include "reports/answers/answers.h"
#include "reports/page/page.h"
#include "reports/render/render.h"
#include "tests/support/blocks.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>

#include <fstream>

namespace assay::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// One socket of an EPYC 9654, all of whose cores may be used.
Json bare_metal() {
  return {{"cpu",
           {{"name", "AMD Zen 4"},
            {"brand", "AMD EPYC 9654 96-Core Processor"},
            {"sockets", 1},
            {"cores", 96},
            {"usable_cores", 96},
            {"clocks_hz", {{"max", 3.7e9}}}}},
          {"memory", {{"channels", {{"all", 12}, {"populated", 12}, {"transfers_per_second", 4.8e9}}}}},
          {"virtual_machine", nullptr}};
}

Record triad(double rate = 3.6e11) {
  Record record = test::record_of("memory/op=triad/bytes=1073741824/store=auto/threads=all",
                                  {test::metric("bandwidth", rate, "B/s")});
  record.device = "cpu";
  record.labels = {{"level", "memory"}, {"store", "nontemporal"}};
  return record;
}

BoundShare scale_in(const Json& environment, const Record& record, std::vector<Record> others = {}) {
  others.push_back(record);
  const RunData run = test::run_of(std::move(others), "r", {{"environment", environment}});
  const Record& own = run.records.back();
  return bound_share_of({&run, &own}, own.metrics.front());
}

TEST(MemoryBound, IsChannelsTimesTheirConfiguredRate) {
  const BoundShare scale = scale_in(bare_metal(), triad());
  ASSERT_TRUE(scale.bound);
  EXPECT_DOUBLE_EQ(scale.bound->value, 12 * 4.8e9 * 8);
  EXPECT_DOUBLE_EQ(*scale.share, 3.6e11 / 4.608e11);
  EXPECT_EQ(scale.bound->source, "12 channels x 4800 MT/s x 8 bytes (EDAC; SMBIOS, configured)");
  ASSERT_TRUE(scale.usual);
  EXPECT_FALSE(scale.low());
}

TEST(MemoryBound, AnEmptyChannelTakesItsPartOfWhatTheSheetSays) {
  Json machine = bare_metal();
  machine["memory"]["channels"] = {{"all", 12}, {"populated", 9}, {"transfers_per_second", nullptr}};
  const BoundShare scale = scale_in(machine, triad());
  EXPECT_DOUBLE_EQ(scale.bound->value, 4.608e11 * 9 / 12);
  EXPECT_THAT(scale.bound->source, AllOf(HasSubstr("9 of 12 channels have DIMMs (EDAC)"), HasSubstr("DDR5-4800")));
}

TEST(MemoryBound, WithoutEdacTheSheetCountsAndWithoutBothTheChannelsAreUnknown) {
  Json machine = bare_metal();
  machine["memory"]["channels"] = nullptr;
  EXPECT_DOUBLE_EQ(scale_in(machine, triad()).bound->value, 4.608e11);
  machine["cpu"]["brand"] = machine["cpu"]["name"] = "A CPU";
  EXPECT_EQ(scale_in(machine, triad()).why, "channels unknown: no EDAC driver, and no hardware sheet of this CPU");
  machine["memory"]["channels"] = {{"all", 4}, {"populated", 4}, {"transfers_per_second", nullptr}};
  const BoundShare unprivileged = scale_in(machine, triad());
  EXPECT_FALSE(unprivileged.bound);
  EXPECT_THAT(unprivileged.why, HasSubstr("4 channels (EDAC); their rate is unknown"));
}

TEST(MemoryBound, IsHiddenByAHypervisorAndOfNoPartOfAMachine) {
  Json machine = bare_metal();
  machine["virtual_machine"] = "KVM";
  const BoundShare hidden = scale_in(machine, triad());
  EXPECT_FALSE(hidden.bound || hidden.share);
  EXPECT_EQ(hidden.why, "channels unknown: the hypervisor (KVM) hides them");
  Json part = bare_metal();
  part["cpu"]["usable_cores"] = 2;
  EXPECT_THAT(scale_in(part, triad()).why, HasSubstr("only a part of the machine"));
  Record one_core = triad();
  one_core.key = "memory/op=triad/threads=core";
  EXPECT_FALSE(scale_in(bare_metal(), one_core).bound);
  Record cached = triad();
  cached.labels["level"] = "L2";
  EXPECT_FALSE(scale_in(bare_metal(), cached).bound);
}

Record gemm(double rate, const std::string& shape = "m=2048/n=2048/k=2048") {
  Record record = test::record_of("gemm/dtype=f32/" + shape, {test::metric("throughput", rate, "FLOP/s")});
  record.device = "cpu";
  record.choices = {{"isa", "avx2"}, {"threads", "2"}};
  return record;
}

Record peak(double rate, const std::string& threads = "2") {
  Record record =
      test::record_of("peak/dtype=f32/isa=auto/threads=" + threads, {test::metric("throughput", rate, "FLOP/s")});
  record.device = "cpu";
  record.params = {{"dtype", "f32"}, {"isa", "auto"}};
  record.choices = {{"isa", "avx2"}, {"threads", threads}};
  return record;
}

TEST(ProductBound, IsThePeakThatTheRunMeasuredAlsoAfterTheProduct) {
  std::vector<Record> records{gemm(1.5e11), peak(2e11), peak(1e11, "1")};
  const RunData run = test::run_of(records);
  const BoundShare scale = bound_share_of({&run, &run.records[0]}, run.records[0].metrics.front());
  EXPECT_DOUBLE_EQ(*scale.share, 0.75);
  EXPECT_FALSE(scale.low());
  EXPECT_EQ(scale.bound->source, "peak/dtype=f32/isa=auto/threads=2, measured in this run");
  EXPECT_FALSE(scale_in({}, gemm(1.5e11)).bound);
}

TEST(ProductBound, FarBelowTheUsualShareIsNoPraise) {
  EXPECT_TRUE(scale_in({}, gemm(0.42e11), {peak(2e11)}).unusual());
  EXPECT_FALSE(scale_in({}, gemm(1.42e11), {peak(2e11)}).unusual()) << "within 3 % of the usual";
  Record other = gemm(0.42e11, "m=512/n=512/k=512");
  const BoundShare scale = scale_in({}, other, {peak(2e11)});
  EXPECT_FALSE(scale.unusual());
  EXPECT_TRUE(scale.low()) << "21 % of the peak, without a usual share";
}

TEST(ProductBound, OfFewRowsIsWhatMemoryAllows) {
  // 64 x 4096 x 4096: 2 x 64 x 4096^2 FLOP over 4 x (64 x 4096 x 2 + 4096^2) bytes.
  const double intensity = 2.0 * 64 * 4096 * 4096 / (4.0 * (64 * 4096 * 2 + 4096.0 * 4096));
  const BoundShare scale = scale_in({}, gemm(3e11, "m=64/n=4096/k=4096"), {peak(1e12), triad(2e10)});
  EXPECT_TRUE(scale.of_memory);
  EXPECT_DOUBLE_EQ(scale.bound->value, 2e10 * intensity);
  EXPECT_FALSE(scale_in({}, gemm(3e11), {peak(1e12), triad(2e10)}).of_memory);
}

TEST(PeakBound, IsVectorWidthTimesCoresTimesClock) {
  const BoundShare scale = scale_in(bare_metal(), peak(2e11));
  EXPECT_DOUBLE_EQ(scale.bound->value, 2 * 32 * 3.7e9);
  Json machine = bare_metal();
  machine["cpu"]["turbo"] = false;
  machine["cpu"]["clocks_hz"]["base"] = 2.4e9;
  EXPECT_DOUBLE_EQ(scale_in(machine, peak(2e11)).bound->value, 2 * 32 * 2.4e9);
  machine["cpu"]["clocks_hz"] = Json::object();
  machine["virtual_machine"] = "KVM";
  EXPECT_EQ(scale_in(machine, peak(2e11)).why, "clock unknown: the hypervisor (KVM) hides it");
}

TEST(TrainingBound, OfTokensIsThatOfTheFlops) {
  Record step =
      test::record_of("transformer/model=m/precision=f32/threads=all",
                      {test::metric("throughput", 1000, "tokens/s"), test::metric("model_flops", 5e10, "FLOP/s")});
  step.device = "cpu";
  step.choices["threads"] = "2";
  const BoundShare scale = scale_in({}, step, {peak(2e11)});
  EXPECT_DOUBLE_EQ(scale.bound->value, 4000);
  EXPECT_DOUBLE_EQ(*scale.share, 0.25);
  EXPECT_FALSE(scale_in({}, step).bound);
}

TEST(LinkBound, OfCopiesIsTheGpusLinkAndOfHostsTheirPorts) {
  Record copy = test::record_of("transfer/direction=h2d/memory=pinned", {test::metric("bandwidth", 5e10, "B/s")});
  copy.device = "cuda";
  copy.ranks.resize(1);
  copy.ranks[0].pci = "0000:1b:00.0";
  Json machine = {{"gpus", {{{"pci", "0000:1b:00.0"}, {"max_link_width", 16}, {"max_link_gigatransfers", 32}}}}};
  EXPECT_DOUBLE_EQ(scale_in(machine, copy).bound->value, pcie_rate(16, 32));

  Record reduce = test::record_of("collective/op=all_reduce", {test::metric("busbw", 2e10, "B/s")});
  reduce.world_ranks = 16;
  reduce.world_nodes = 2;
  machine["network"] = {{{"name", "mlx5_0:1"}, {"up", true}, {"gigabits", 400}},
                        {{"name", "mlx5_1:1"}, {"up", false}, {"gigabits", 400}},
                        {{"name", "mlx5_2:1"}, {"up", true}, {"gigabits", 400}, {"pci_bytes_per_second", 3e10}}};
  EXPECT_DOUBLE_EQ(scale_in(machine, reduce).bound->value, (5e10 + 3e10) * (15.0 / 16) / (1.0 / 2));
  machine["network"].push_back({{"name", "eth0"}, {"up", true}, {"gigabits", nullptr}});
  EXPECT_FALSE(scale_in(machine, reduce).bound) << "a port of unknown rate carries traffic too";
  machine["network"].erase(3);
  reduce.world_nodes = 1;
  EXPECT_FALSE(scale_in(machine, reduce).bound);
}

TEST(Parts, SayWhatTheHypervisorHides) {
  Json machine = bare_metal();
  machine["virtual_machine"] = "KVM";
  machine["cpu"]["clocks_hz"] = Json::object();
  machine["disks"] = {{{"name", "nvme0"}, {"model", "DISK 1"}, {"pci_bytes_per_second", 7.9e9}}};
  const RunData run = test::run_of({triad()}, "r", {{"environment", machine}});
  EXPECT_EQ(hidden_text(run), "the hypervisor (KVM) hides the memory channels and the clock");
  EXPECT_EQ(hidden_text(test::run_of({}, "r", {{"environment", bare_metal()}})), "");
  std::vector<RunData> runs;
  runs.push_back(run);
  const RunSet set(std::move(runs));
  const auto sections = part_sections(set);
  const Table& table = test::table_of(sections, "parts");
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(test::cell(table, 1, "source").text, "channels unknown: the hypervisor (KVM) hides them");
  EXPECT_EQ(test::cell(table, 3, "part").text, "nvme0");
  EXPECT_THAT(normal_answer(set, {}).text, HasSubstr("the hypervisor (KVM) hides the memory channels and the clock"));
}

TEST(Normal, AFigureBelowTheUsualShareIsNotNormalAndOneWithinItIs) {
  const auto answer = [](double rate) {
    std::vector<RunData> runs;
    runs.push_back(test::run_of({gemm(rate), peak(2e11)}, "r", {{"environment", bare_metal()}}));
    return normal_answer(RunSet(std::move(runs)), {});
  };
  EXPECT_EQ(answer(0.42e11).tone, Tone::warn);
  EXPECT_THAT(answer(0.42e11).text, HasSubstr("gemm f32 2048 x 2048 x 2048 21 % (usual: 72 % – 86 %)"));
  EXPECT_EQ(answer(1.6e11).tone, Tone::good);
}

TEST(Normal, AProductBelowTheUsualShareSaysWhetherAnotherFormWasFaster) {
  const auto text = [](double rate, const Attributes& tried, const std::string& form = "plain") {
    Record record = gemm(rate);
    record.labels = tried;
    if (!form.empty()) record.labels["form"] = form;
    std::vector<RunData> runs;
    runs.push_back(test::run_of({record, peak(2e11)}, "r", {{"environment", bare_metal()}}));
    return normal_answer(RunSet(std::move(runs)), {}).text;
  };
  const Attributes three = {{"tried_plain", "50"}, {"tried_packed", "56"}, {"tried_inner_product", "40"}};
  EXPECT_THAT(text(0.42e11, three),
              HasSubstr("(usual: 72 % – 86 %): the packed form was 1.12 times as fast in the trial"));
  EXPECT_THAT(text(0.42e11, three, "packed"),
              HasSubstr(": no other of the 3 forms tried was faster (the slowest: 71 % of its rate)"));
  EXPECT_THAT(text(0.42e11, {{"tried_plain", "1000"}, {"tried_packed", "1009"}}), HasSubstr("2 forms tried was faster"))
      << "the search prefers the packed form among those within 1 %";
  EXPECT_THAT(text(0.42e11, {{"tried_plain", "50"}}), HasSubstr(": only the plain form was tried"));
  EXPECT_THAT(text(1.6e11, three), Not(HasSubstr("form"))) << "within the usual share";
  for (const Attributes& unknown :
       {Attributes{}, Attributes{{"tried_packed", "56"}}, Attributes{{"tried_plain", "fast"}}})
    EXPECT_THAT(text(0.42e11, unknown), Not(HasSubstr("tried")))
        << "what was measured was not tried, as far as is known";
  EXPECT_THAT(text(0.42e11, three, ""), Not(HasSubstr("tri")));
}

TEST(PartsData, AreReadStrictly) {
  test::TemporaryFolder folder;
  const auto refusal = [&](const Json& usual) {
    std::ofstream(folder.path() / "parts.json")
        << Json{{"schema", 1}, {"flop_per_cycle", Json::array()}, {"usual", {usual}}};
    return test::refusal([&] { load_parts(folder.path() / "parts.json"); });
  };
  Json usual = {{"key", "gemm/*"}, {"metric", "throughput"}, {"unit", "FLOP/s"}, {"share", {"70%", "80%"}}};
  EXPECT_THAT(refusal(usual), HasSubstr("/usual/0: \"source\""));
  usual["source"] = "a paper";
  EXPECT_THAT(refusal(usual), IsEmpty());
  usual["share"] = {"80%", "70%"};
  EXPECT_THAT(refusal(usual), HasSubstr("lower end"));
  usual["share"] = {"80%", "170%"};
  EXPECT_THAT(refusal(usual), HasSubstr("too large"));
  for (const CorePeak& core : shipped_parts().cores) EXPECT_GE(core.source.size(), 20u);
}

TEST(OneScreen, HasAtMostFortyLinesAndSaysWhatItCut) {
  const std::string text(400, 'x');
  std::string words;
  for (int i = 0; i < 100; ++i) words += "words ";
  Document whole{"t", words, "held: 1 · report: p.html", Tone::good, {}};
  for (const char* id : {"right", "steady", "normal", "limit"})
    whole.answers.push_back({id, id, words, Tone::warn, {}});
  Table figures{"figures", "", {{"case"}, {"median", "figure"}, {"published"}}};
  Table rules{"diagnosis", "", {{"rule"}, {"state"}, {"case"}, {"evidence"}, {"ceiling"}}};
  List failed{"attention", {}}, fixes{"fixes", {}};
  for (int i = 0; i < 30; ++i) {
    const std::string id = fmt::format("rule-{}", i);
    figures.rows.push_back({{id}, {"1 s"}, {words}});
    rules.rows.push_back({{id}, {"bad"}, {words}, {words}, {"about 2 x", 2}});
    failed.items.push_back(text);
    fixes.items.push_back(id + ": " + words);
  }
  whole.sections = {{"attention", "What failed", {failed}},
                    {"figures", "Figures", {figures}, false},
                    {"suites", "Suites", {figures}},
                    {"diagnosis", "What to change", {rules, fixes}}};
  const std::string screen = render_terminal(one_screen(whole), {.width = 100});
  EXPECT_LE(std::ranges::count(screen, '\n'), 40) << screen;
  EXPECT_THAT(screen, AllOf(HasSubstr("27 more on the page"), HasSubstr("2 x: "), HasSubstr("figure"),
                            HasSubstr("Figures"), HasSubstr("- about 2 x: "), HasSubstr("p.html")));
  EXPECT_THAT(screen, testing::Not(HasSubstr("Suites")));
}

}  // namespace
}  // namespace assay::report
