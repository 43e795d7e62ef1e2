// Whole comparisons of hand-made runs: what is paired, what is left out and why, what differs, which exit code.
#include "reports/compare/compare.h"

#include "harness/runs/machine_kind.h"
#include "reports/compare/difference.h"
#include "reports/compare/pairing.h"
#include "reports/render/render.h"
#include "tests/support/blocks.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"
#include "tests/unit/reports/cost_fixtures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report::comparison {
namespace {

Record record_of(double value, double half = 0.5, const std::string& key = "gemm/m=1") {
  Record record =
      test::record_of(key, {test::metric("throughput", value, "FLOP/s", Interval{value - half, value + half})});
  record.params = Json::object();
  record.protocol = Json{{"cache", "cold"}, {"hash", "a"}};
  return record;
}

// A run of these records; the name makes equal runs distinct.
RunData run_of(std::vector<Record> records, Json more = Json::object(), const std::string& name = "r") {
  more.emplace("started", name);
  return test::run_of(std::move(records), "runs/" + name, more);
}

RunSet set_of(const std::vector<double>& values, const std::string& side) {
  std::vector<RunData> runs;
  for (std::size_t i = 0; i < values.size(); ++i)
    runs.push_back(run_of({record_of(values[i])}, Json::object(), side + std::to_string(i)));
  return RunSet(std::move(runs));
}

RunSet set_of(Record record) { return RunSet({run_of({std::move(record)})}); }

std::string reason_of(const std::function<void(Record&)>& change) {
  Record head = record_of(99);
  change(head);
  const RunSet base = set_of(record_of(100)), changed = set_of(head);
  const Pairing pairing = pair_sides(base, changed);
  std::string text;
  for (const LeftOut& one : pairing.left_out) text += (text.empty() ? "" : " | ") + one.reason;
  return text;
}

RunData on_machine(double value, const std::string& name, const Json& environment, const std::string& type = "") {
  return run_of({record_of(value)}, {{"environment", environment}, {"labels", {{"instance_type", type}}}}, name);
}

Json hardware(const std::string& cpu, int cores, double gib, int gpus) {
  Json list = Json::array();
  for (int i = 0; i < gpus; ++i) list.push_back({{"name", "NVIDIA H100"}});
  return {{"cpu", {{"name", cpu}, {"cores", cores}}}, {"memory", {{"total_bytes", gib * 0x1p30}}}, {"gpus", list}};
}

RunSet runs_on(const std::vector<std::pair<double, Json>>& all, const std::string& side) {
  std::vector<RunData> runs;
  for (std::size_t i = 0; i < all.size(); ++i)
    runs.push_back(on_machine(all[i].first, side + std::to_string(i), all[i].second));
  return RunSet(std::move(runs));
}

TEST(MachineKinds, DifferInWhatBothName) {
  const Json zen = hardware("Zen 4", 8, 64, 0);
  const std::vector<std::pair<Json, std::size_t>> cases = {
      {zen, 1},
      {hardware("Zen 4", 8, 62, 0), 1},  // counted by the kernel instead of the firmware
      {Json::object(), 1},               // it says nothing
      {hardware("Zen 5", 8, 64, 0), 2},
      {hardware("Zen 4", 16, 64, 0), 2},
      {hardware("Zen 4", 8, 128, 0), 2},
      {hardware("Zen 4", 8, 64, 8), 2},
  };
  for (const auto& [other, kinds] : cases)
    EXPECT_EQ(machine_kinds({on_machine(1, "a", zen), on_machine(1, "b", other)}).size(), kinds) << other;
  EXPECT_EQ(machine_kinds({on_machine(1, "a", zen, "p5"), on_machine(1, "b", zen, "p4")}).size(), 2u);
  // A run that says nothing joins one kind, and does not join the others to it.
  const auto kinds = machine_kinds(
      {on_machine(1, "a", Json::object()), on_machine(1, "b", zen), on_machine(1, "c", hardware("Zen 5", 8, 64, 0))});
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].runs, (std::vector<std::size_t>{0, 1}));
}

TEST(ComparePairing, DifferentMachinesAreNeverSamplesOfOneSide) {
  const Json small = hardware("Zen 4", 8, 64, 0), large = hardware("Zen 4", 96, 768, 8);
  const RunSet one = runs_on({{100, small}}, "a"), both = runs_on({{101, small}, {900, large}}, "b"),
               later = runs_on({{910, large}, {102, small}, {99, small}}, "c"),
               two = runs_on({{1, small}, {2, small}}, "d");
  const RunSet strange = runs_on({{5, hardware("Zen 5", 8, 64, 0)}, {6, large}}, "f");
  const std::string refused = test::refusal<UsageError>([&] { pair_sides(both, strange); });
  for (const char* part : {"base has Zen 4", "(runs/b0)", "8 x NVIDIA H100 (runs/f1)", "give one side a single kind"})
    EXPECT_NE(refused.find(part), std::string::npos) << refused;
  EXPECT_EQ(refused.find('\n'), std::string::npos);
  // Kinds that pair are compared one by one.
  const Pairing pairing = pair_sides(both, later);
  ASSERT_EQ(pairing.pairs.size(), 2u);
  EXPECT_NEAR(std::exp(pairing.pairs[0].head_runs.at(0).log), 102, 1e-9);
  EXPECT_EQ(pairing.pairs[0].head_runs.size(), 2u);
  EXPECT_NEAR(std::exp(pairing.pairs[1].head_runs.at(0).log), 910, 1e-9);
  EXPECT_NE(pairing.pairs[0].machine, pairing.pairs[1].machine);
  // A single kind is compared with each of the other side.
  const Pairing each = pair_sides(one, both);
  ASSERT_EQ(each.pairs.size(), 2u);
  EXPECT_NEAR(std::exp(each.pairs[0].head_runs.at(0).log), 101, 1e-9);
  EXPECT_NEAR(std::exp(each.pairs[1].head_runs.at(0).log), 900, 1e-9);
  EXPECT_EQ(each.pairs[0].base, each.pairs[1].base);
  // Hosts of one kind are samples as before, and two kinds are what a comparison of base and head is for.
  EXPECT_EQ(pair_sides(one, two).pairs.at(0).head_runs.size(), 2u);
  EXPECT_EQ(pair_sides(one, runs_on({{9, large}}, "e")).pairs.at(0).machine, "");
}

TEST(ComparePairing, ACheckWithoutFigureHoldsOrNot) {
  Record code = record_of(1);
  code.metrics.clear();
  code.checks = {{.name = "return_code", .passed = true, .value = 0, .limit = 0, .detail = {}}};
  Record broken = code;
  broken.status = Status::error;
  broken.reason = "return code 3";
  const RunSet base = set_of(code), same = RunSet({run_of({code}, Json::object(), "s")}), head = set_of(broken);
  EXPECT_TRUE(pair_sides(base, same).left_out.empty());
  const Pairing pairing = pair_sides(base, head);
  ASSERT_EQ(pairing.broken.size(), 1u);
  EXPECT_TRUE(pairing.left_out.empty());
}

TEST(ComparePairing, ABrokenTestTakesTheCasesBelowItsKeyWithIt) {
  Record broken = record_of(1, 0.5, "imported/ar");
  broken.status = Status::error;
  broken.metrics.clear();
  const RunSet base({run_of({record_of(1, 0.5, "imported/ar/8"), record_of(1, 0.5, "imported/arx")})});
  const RunSet head = set_of(broken);
  const Pairing pairing = pair_sides(base, head);
  ASSERT_EQ(pairing.broken.size(), 1u);
  EXPECT_EQ(pairing.broken[0].entry->record->key, "imported/ar/8");
  broken.key = "imported/ar/return_code:0";
  const RunSet code = set_of(broken);
  EXPECT_EQ(pair_sides(base, code).broken.size(), 1u);
}

TEST(ComparePairing, OnlyComparableMeasurementsArePaired) {
  const std::vector<std::pair<std::function<void(Record&)>, std::string>> cases = {
      {[](Record&) {}, ""},
      {[](Record& r) { r.protocol["extra"] = 1; }, ""},  // the hash decides
      {[](Record& r) { r.key = "gemm/m=2"; }, "only in base | only in head"},
      {[](Record& r) { r.device = "cuda"; }, "only in base | only in head"},
      {[](Record& r) { r.world_ranks = 2; }, "only in base | only in head"},
      {[](Record& r) { r.seed = 7; }, "only in base | only in head"},
      {[](Record& r) {
         r.protocol = Json{{"cache", "hot"}, {"hash", "b"}};
       },
       "different protocol: cache cold / hot | different protocol: cache cold / hot"},
      {[](Record& r) { r.protocol["hash"] = "b"; }, "different protocol: hash a / b | different protocol: hash a / b"},
      {[](Record& r) { r.choices["implementation"] = "amx"; },
       "different implementation: not recorded / amx | different implementation: not recorded / amx"},
      {[](Record& r) { r.choices["isa"] = "avx2"; },
       "different instruction set: not recorded / avx2 | different instruction set: not recorded / avx2"},
      {[](Record& r) { r.status = Status::skipped, r.reason = "no AMX\nmore"; }, "skipped in head: no AMX"},
      {[](Record& r) { r.flags = {"injected:slow-rank"}; }, "a fault was injected in head"},
      {[](Record& r) { r.comparable = false, r.flags = {"oversubscribed"}; }, "not comparable in head: oversubscribed"},
      {[](Record& r) { r.metrics[0].value.reset(); }, "no figure in head"},
      {[](Record& r) { r.metrics[0].name = "bandwidth"; }, "throughput absent in head"},
      {[](Record& r) { r.metrics[0].unit = "B/s"; }, "throughput in different units: FLOP/s / B/s"},
      {[](Record& r) { r.metrics[0].better = Better::lower; },
       "throughput in different directions: higher / lower is better"},
      {[](Record& r) { r.metrics[0].value = 0; }, "throughput in head is not above 0: no ratio"},
      {[](Record& r) { r.metrics[0].value = -3; }, "throughput in head is not above 0: no ratio"},
  };
  for (const auto& [change, reason] : cases) EXPECT_EQ(reason_of(change), reason);
}

TEST(ComparePairing, HostsArePairedOnlyIfBothSidesMeasuredEach) {
  const Json each = {{"argv", {"assay", "run", "--each-host"}}};
  const auto on = [](const char* host) {
    Record record = record_of(100);
    record.ranks = {{0, host, "", {}}};
    return record;
  };
  const RunSet plain({run_of({on("a")})}), other({run_of({on("b")})});
  EXPECT_EQ(pair_sides(plain, other).pairs.size(), 1u);
  const RunSet hosts({run_of({on("a"), on("b")}, each)}), later({run_of({on("b"), on("c")}, each)});
  const Pairing pairing = pair_sides(hosts, later);
  ASSERT_EQ(pairing.pairs.size(), 1u);
  EXPECT_EQ(pairing.pairs[0].base->record->ranks[0].host, "b");
  EXPECT_EQ(pairing.left_out.size(), 2u);
  // Two hosts of one run against one host of another: their average counts as one run.
  EXPECT_EQ(pair_sides(hosts, plain).pairs.at(0).base_runs.size(), 1u);
}

// If the metric has no interval, the range of samples replaces it: times of 1.0 .. 1.3 s with median 1.1 s give a rate
// of 100 the range from 100 * 1.1 / 1.3 to 100 * 1.1 / 1.0.
TEST(ComparePairing, SamplesReplaceAMissingInterval) {
  Record record = record_of(100);
  record.metrics[0].ci95.reset();
  record.samples.values = {1.1, 1.0, 1.3, 1.1, 1.1};
  const RunSet base = set_of(record), head = set_of(record_of(100));
  const Pairing pairing = pair_sides(base, head);
  ASSERT_TRUE(pairing.pairs.at(0).base_runs.at(0).within);
  EXPECT_NEAR(std::exp(pairing.pairs[0].base_runs[0].within->low), 100 * 1.1 / 1.3, 1e-9);
  EXPECT_NEAR(std::exp(pairing.pairs[0].base_runs[0].within->high), 100 * 1.1 / 1.0, 1e-9);
}

ExitCode code_of(const std::vector<double>& base, const std::vector<double>& head, double tolerance = 0.03) {
  const RunSet b = set_of(base, "b"), h = set_of(head, "h");
  return compare(b, h, {.tolerance = tolerance}).counts.exit_code();
}

TEST(Compare, ExitCodes) {
  EXPECT_EQ(code_of({100}, {90}), ExitCode::failed);
  EXPECT_EQ(code_of({100}, {90}, 0.2), ExitCode::ok);
  EXPECT_EQ(code_of({100}, {120}), ExitCode::ok);
  EXPECT_EQ(code_of({100}, {99}), ExitCode::ok);
  EXPECT_EQ(code_of({100, 101, 99}, {95, 96, 94}), ExitCode::failed);
  EXPECT_EQ(code_of({100, 101, 99}, {100.2, 101.2, 99.2}), ExitCode::ok);
  EXPECT_EQ(code_of({100, 130, 80}, {95, 125, 75}), ExitCode::no_data);
  EXPECT_EQ(code_of({}, {95}), ExitCode::no_data);
  EXPECT_EQ(code_of({100}, {}), ExitCode::no_data);
}

TEST(Compare, ACaseThatNoLongerHoldsIsAFinding) {
  Record failed = record_of(100);
  failed.status = Status::failed;
  failed.checks = {{"wrong_elements", false, 3.0, 0.0, {}}};
  const RunSet good = set_of(record_of(100)), bad = set_of(failed);
  const CompareResult result = compare(good, bad, {});
  EXPECT_EQ(result.counts.exit_code(), ExitCode::failed);
  EXPECT_NE(render_terminal(result.document, {}).find("failed: check wrong_elements"), std::string::npos);
  EXPECT_EQ(compare(bad, good, {}).counts.exit_code(), ExitCode::no_data);  // it was broken before: nothing to compare
  EXPECT_EQ(compare(bad, bad, {}).counts.broken, 0);
  failed.flags = {"injected:wrong-sum"};
  const RunSet injected_fault = set_of(failed);
  EXPECT_EQ(compare(good, injected_fault, {}).counts.broken, 0);
}

TEST(Compare, AnErrorWithoutAProtocolIsAFindingToo) {
  Record broken = record_of(100);
  broken.status = Status::error;
  broken.reason = "killed by signal 9";
  broken.protocol = Json::object();
  broken.metrics.clear();
  const RunSet base = set_of(record_of(100)),
               head({run_of({record_of(100)}, Json::object(), "h1"), run_of({broken}, Json::object(), "h2")});
  const CompareResult result = compare(base, head, {});
  EXPECT_EQ(result.counts.exit_code(), ExitCode::failed);
  EXPECT_NE(render_markdown(result.document).find("killed by signal 9 (in 1 of 2 runs of head)"), std::string::npos);
}

TEST(Compare, TheSameRunIsTheSame) {
  RunData run = run_of({record_of(100)});
  run.records[0].metrics[0].ci95.reset();
  run.content = 7;
  const RunSet base({run}), head({run});
  const CompareResult result = compare(base, head, {});
  EXPECT_EQ(result.counts.same, 1);
  EXPECT_EQ(result.counts.exit_code(), ExitCode::ok);
}

TEST(CompareEnvironment, OnlyDifferencesAreListed) {
  const auto on = [](Json environment) {
    return RunSet({run_of({}, {{"environment", std::move(environment)}, {"plan", {{"name", "quick"}}}})});
  };
  const Json base = {
      {"cpu", {{"name", "AMD Zen 4"}, {"governors", {"performance"}}, {"isa", {"a", "b", "c", "d", "e"}}}},
      {"gpus", {{{"name", "NVIDIA H100"}}, {{"name", "NVIDIA H100"}}}},
      {"libraries", {{"onednn", "3.2.0"}}},
      {"load", 0.1}};
  Json head = base;
  head["cpu"]["governors"] = {"powersave"};
  head["cpu"]["isa"] = {"a", "b", "c", "d", "f"};
  head["gpus"] = {{{"name", "NVIDIA H100"}}};
  head["libraries"]["onednn"] = "3.5.0";
  head["load"] = 9.0;
  head["unheard_of"] = {{"thing", true}};
  const RunSet b = on(base), h = on(head);
  EXPECT_TRUE(environment_difference(b, b).fields.empty());
  const EnvironmentDifference difference = environment_difference(b, h);
  std::vector<std::string> seen;
  for (const EnvironmentField& field : difference.fields)
    seen.push_back(field.title + ": " + field.base_text + " / " + field.head_text);
  EXPECT_EQ(seen, (std::vector<std::string>{"GPU: 2 x NVIDIA H100 / NVIDIA H100", "instruction sets: also e / also f",
                                            "onednn: 3.2.0 / 3.5.0", "governor: performance / powersave",
                                            "unheard_of thing: – / yes"}));
}

TEST(CompareEnvironment, DifferingRunsOfASideAreListed) {
  const auto with = [](const char* kernel, const char* name) {
    return run_of({}, {{"environment", {{"os", {{"kernel", kernel}}}}}}, name);
  };
  const RunSet base({with("6.1", "a"), with("6.8", "b")}), head({with("6.8", "c")});
  const EnvironmentDifference difference = environment_difference(base, head);
  EXPECT_EQ(difference.within_base, std::vector<std::string>{"kernel"});
  EXPECT_EQ(difference.fields.at(0).base_text, "6.1; 6.8");
}

// The change of costs in the only row of the table `cost`.
std::string cost_change(std::optional<Interval> base_rate, std::optional<Interval> head_rate) {
  // The speed is that of the step, with a far narrower interval than the throughput, which gives the cost.
  const auto side = [](double step, std::optional<Interval> rate) {
    return RunSet({run_on("box", {training({test::seconds("step_time", step, Interval{step * 0.9999, step * 1.0001}),
                                            test::metric("throughput", 1000 / step, "tokens/s", rate)})})});
  };
  const RunSet base = side(1, base_rate), head = side(1.0312, head_rate);
  CompareOptions options;
  options.prices = box_price(7.2);
  const CompareResult result = compare(base, head, options);
  const Table& costs = test::table_of(result.document.sections, "cost");
  EXPECT_EQ(costs.rows.size(), 1u);
  return test::cell(costs, 0, "ratio").text;
}

TEST(CompareCosts, DigitsOfARatioAreThoseOfTheCosts) {
  EXPECT_EQ(cost_change({}, {}), "+3.1 %");
  EXPECT_EQ(cost_change(Interval{800, 1250}, Interval{800, 1200}), "+3 %");
  EXPECT_EQ(cost_change(Interval{999.9, 1000.1}, Interval{969.65, 969.84}), "+3.12 %");
}

TEST(Compare, SurvivesMalformedRuns) {
  RunData odd = run_of({record_of(100)});
  odd.run = Json::array({1});
  RunData other = run_of({record_of(100)});
  other.run = {{"environment", "text"}, {"plan", {{"cases", {1, "x"}}}}, {"labels", 3}, {"argv", "x"}};
  const RunSet base({odd}), head({other});
  const CompareResult result = compare(base, head, {});
  EXPECT_FALSE(render_json(result.document).empty());
  EXPECT_FALSE(render_markdown(result.document).empty());
}

}  // namespace
}  // namespace assay::report::comparison
