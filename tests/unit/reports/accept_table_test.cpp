// The table of an acceptance: its exit code, and how it is drawn and written.
#include "reports/acceptance/accept.h"

#include "reports/render/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace assay::report {
namespace {

using namespace fitness;

using testing::HasSubstr;
using testing::Not;

Acceptance example() {
  AcceptedHost good{.host = "a"}, bad{.host = "b, \"2\""};
  good.checks["audit"].state = Fitness::pass;
  HostCheck& slow = bad.checks["host"];
  slow.note(Fitness::fail, "gemm is slow");
  slow.of = "gemm throughput", slow.unit = "FLOP/s", slow.figure = 60, slow.floor = 95;
  bad.gpus = {{"0000:1b:00.0", "GPU-1", "H100", "SLOT 2", "1234"}};
  bad.commands = {{"dcgmi diag -r 3", "it finds more"}};
  return {.level = "quick", .started = "2026-01-01T00:00:00Z", .seconds = 61, .hosts = {good, bad}};
}

TEST(AcceptTable, ItsExitCode) {
  Acceptance all = example();
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::failed);
  all.hosts.pop_back();
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::ok);
  all.hosts.front().checks["pairs"].note(Fitness::unsure, "");
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::no_data);
  all.hosts.front().checks.clear();
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::no_data);
}

// A host that passed what was run, of a level that requires pairs too.
Acceptance without_pairs() {
  Acceptance all = example();
  all.hosts.pop_back();
  HostCheck& pairs = all.hosts.front().checks["pairs"];
  pairs.required = true;
  pairs.evidence = {"it needs two hosts"};
  return all;
}

TEST(AcceptTable, WhatIsRequiredAndWasNotRunIsNoPass) {
  Acceptance all = without_pairs();
  EXPECT_EQ(all.hosts.front().state(), Fitness::unsure);
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::no_data);
  const Document document = accept_document(all);
  EXPECT_EQ(document.tone, Tone::warn);
  const std::string shown = render_terminal(document, {.width = unlimited_columns});
  EXPECT_THAT(shown, HasSubstr("required, but not run: pairs: it needs two hosts (all hosts)"));
  EXPECT_THAT(shown, HasSubstr("hosts passed: 0 · failed: 0 · inconclusive: 1"));
  EXPECT_LT(shown.find("required, but not run"), shown.find("audit"));
  const Json json = accept_json(all, false);
  EXPECT_EQ(json["verdict"], "inconclusive");
  EXPECT_EQ(json["hosts"][0]["checks"][2]["state"], "not_run");
  EXPECT_EQ(json["hosts"][0]["checks"][2]["required"], true);
  // A host that failed is left out of what follows.
  all.hosts.front().checks["host"].note(Fitness::fail, "slow");
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::failed);
  EXPECT_THAT(render_terminal(accept_document(all), {.width = unlimited_columns}),
              Not(HasSubstr("required, but not run: pairs")));
}

TEST(AcceptTable, FloorsThatWereNotMeasuredComeFirstAndCountIfTheyAreRequired) {
  Acceptance all = example();
  all.hosts.pop_back();
  Floor floor;
  floor.key = "gemm/*";
  floor.metric = "throughput";
  floor.unit = "FLOP/s";
  floor.limit = 7e14;
  floor.protocol = Json::object();
  floor.source = "a test";
  floor.ranks = 32, floor.nodes = 4;
  all.not_measured = {{floor, "h.json", "h100", "matched no record"}};
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::ok);
  const std::string line = "not measured at this level: 1 floor of h100 (gemm/* throughput with 32 ranks, 4 nodes)";
  EXPECT_THAT(render_terminal(accept_document(all), {.width = unlimited_columns}), HasSubstr(line));
  all.not_measured.push_back(all.not_measured.front());
  all.not_measured.back().floor.required = true;
  EXPECT_EQ(exit_code(all.fitness()), ExitCode::no_data);
  const std::string shown = render_terminal(accept_document(all), {.width = unlimited_columns});
  EXPECT_THAT(shown, HasSubstr("not measured at this level: 2 floors of h100, 1 of them required ("));
  EXPECT_THAT(shown, HasSubstr("required: gemm/* throughput >= 700 TFLOP/s (32 ranks, 4 nodes): matched no record"));
  EXPECT_LT(shown.find("not measured"), shown.find("audit"));
  EXPECT_THAT(render_html(accept_document(all)), HasSubstr("2 floors of h100, 1 of them required"));
  const Json json = accept_json(all, false);
  EXPECT_EQ(json["verdict"], "inconclusive");
  ASSERT_EQ(json["not_measured"].size(), 2u);
  EXPECT_EQ(json["not_measured"][1]["floors"], "h100");
  EXPECT_EQ(json["not_measured"][1]["at_least"], 7e14);
  EXPECT_EQ(json["not_measured"][1]["required"], true);
  EXPECT_EQ(json["not_measured"][1]["reason"], "matched no record");
  EXPECT_THAT(unmeasured_lines(std::vector<UnmeasuredFloor>(5, all.not_measured.front())).front(),
              HasSubstr("; and 2 more)"));
}

TEST(AcceptTable, JsonHasEveryCheckOfEveryHost) {
  const Json json = accept_json(example(), false);
  EXPECT_EQ(json["verdict"], "fail");
  ASSERT_EQ(json["hosts"].size(), 2u);
  ASSERT_EQ(json["hosts"][0]["checks"].size(), std::size(accept_checks));
  EXPECT_EQ(json["hosts"][0]["checks"][1], (Json{{"name", "host"},
                                                 {"state", "not_run"},
                                                 {"figure", nullptr},
                                                 {"floor", nullptr},
                                                 {"unit", nullptr},
                                                 {"of", nullptr},
                                                 {"evidence", Json::array()}}));
  const Json& slow = json["hosts"][1]["checks"][1];
  EXPECT_EQ(slow["figure"], 60);
  EXPECT_EQ(slow["floor"], 95);
  EXPECT_EQ(slow["bound"], "at_least");
  EXPECT_FALSE(json["hosts"][0].contains("failed"));
  EXPECT_EQ(json["hosts"][1]["failed"]["gpu_uuids"], Json({"GPU-1"}));
  EXPECT_EQ(json["hosts"][1]["failed"]["slots"], Json({"SLOT 2"}));
  EXPECT_FALSE(json["hosts"][1]["failed"].contains("serials"));
  EXPECT_EQ(accept_json(example(), true)["hosts"][1]["failed"]["serials"], Json({"1234"}));
}

TEST(AcceptTable, FailedHostsComeFirstWithThePartToLookAt) {
  Acceptance all = example();
  AcceptedHost& bad = all.hosts.back();
  bad.gpus.push_back({"0000:5d:00.0", "GPU-2", "H100", ""});
  bad.checks["host"].blame("gpu", "0000:5d:00.0");
  const std::string shown = render_terminal(accept_document(all), {.width = unlimited_columns});
  EXPECT_LT(shown.find("b, \"2\"  "), shown.find("\na  "));
  EXPECT_THAT(shown, HasSubstr("b, \"2\": FAIL: GPU 1 (0000:5d:00.0)"));
  EXPECT_THAT(shown, HasSubstr("GPU GPU-2"));
  EXPECT_THAT(shown, Not(HasSubstr("GPU GPU-1")));
  const Json json = accept_json(all, false);
  EXPECT_EQ(json["hosts"][0]["host"], "a");  // in the order of the hosts
  EXPECT_EQ(json["hosts"][1]["failed"]["culprits"],
            Json({{{"part", "gpu"}, {"device", "0000:5d:00.0"}, {"text", "GPU 1 (0000:5d:00.0)"}}}));
}

TEST(AcceptScreen, FitsOneScreenWhateverTheFleet) {
  Acceptance all = example();
  all.floors = "h100-sxm", all.hardware = "8 x NVIDIA H100";
  for (int i = 0; i < 100; ++i) {
    all.hosts.push_back(all.hosts[i % 4 == 0 ? 1 : 0]);
    all.hosts.back().host = "n" + std::to_string(i);
    all.notes.push_back("a note");
  }
  all.hosts[1].checks["host"].blame("gpu", "0000:1b:00.0");
  all.hosts[0].checks["pairs"].note(Fitness::unsure, "the link is slow");
  const std::string shown = render_terminal(accept_screen(all, "out"), {.width = unlimited_columns});
  EXPECT_LE(std::ranges::count(shown, '\n'), 40) << shown;
  EXPECT_THAT(shown,
              testing::StartsWith("102 hosts of 8 x NVIDIA H100 · quick · 1 min 1 s · floors h100-sxm · NOT PASSED\n"
                                  "hosts passed: 75 · failed: 26 · inconclusive: 1\n"));
  EXPECT_THAT(shown,
              HasSubstr("b, \"2\"  FAIL  GPU 0 (0000:1b:00.0)  host: 60 FLOP/s; required: at least 95 FLOP/s: gemm"));
  EXPECT_THAT(shown, HasSubstr("-> vendor: evidence"));
  EXPECT_THAT(shown, HasSubstr("and 7 more hosts: accept.html"));
  EXPECT_THAT(shown, HasSubstr("and 95 more notes"));
  EXPECT_THAT(shown, HasSubstr("next: sh out/drain.sh · out/evidence · out/passed.txt · out/accept.html"));
  all.hosts.resize(1);
  EXPECT_THAT(render_terminal(accept_screen(all, "out"), {.width = unlimited_columns}),
              HasSubstr("a     inconclusive        pairs: the link is slow  -> measure again: --again a"));
}

TEST(AcceptTable, WhatComparingHostsCanFindAndWhatAllReachedAreTold) {
  Acceptance all = example();
  all.compared = {1984, {{"gemm/m=64", "throughput", 64, 0.12, 0.15}, {"", "", 64, 0.03, 0.035}}};
  all.figures = {{"collectives", "collective/op=all_reduce", "busbw", "B/s", 4e10}};
  for (const std::string& shown :
       {render_terminal(accept_document(all), {.width = unlimited_columns}), render_html(accept_document(all))}) {
    EXPECT_THAT(shown, HasSubstr("1,984 comparisons"));
    EXPECT_THAT(shown, HasSubstr("a loss of 15 % in one case, or of 3.5 % in all together is found 9 times in 10"));
    EXPECT_THAT(shown, HasSubstr("40 GB/s"));
  }
  const Json json = accept_json(all, false);
  EXPECT_EQ(json["compared"]["comparisons"], 1984);
  EXPECT_EQ(json["compared"]["cases"][0]["found"], 0.15);
  EXPECT_EQ(json["compared"]["cases"][1]["key"], nullptr);
  EXPECT_EQ(json["figures"][0]["value"], 4e10);
}

TEST(AcceptTable, TextPageAndCsv) {
  const Document document = accept_document(example());
  const std::string shown = render_terminal(document, {.width = unlimited_columns});
  EXPECT_THAT(shown, HasSubstr("FAIL"));
  EXPECT_THAT(shown, HasSubstr("GPU GPU-1, slot SLOT 2"));
  EXPECT_THAT(shown, HasSubstr("run: dcgmi diag -r 3"));
  EXPECT_THAT(shown, HasSubstr("hosts passed: 1 · failed: 1"));
  EXPECT_THAT(render_html(document), HasSubstr("<html"));
  const std::string csv = accept_csv(example());
  EXPECT_THAT(csv, HasSubstr("host,check,state,of,figure,unit,bound,floor,evidence\n"));
  EXPECT_THAT(csv, HasSubstr("\"b, \"\"2\"\"\",host,fail,gemm throughput,60,FLOP/s,at_least,95,gemm is slow\n"));
}

TEST(AcceptTable, RailsAreInTheJsonAndOnThePage) {
  Acceptance all = example();
  const std::string key = "collective/op=all_reduce/among=rail";
  all.rails.ports = {
      {.host = "a", .rail = 1, .send = 1e9, .receive = 2e9, .floor = 9e8, .partners = 3, .state = "pass"}};
  all.rails.groups = {
      {.key = key, .rail = 0, .hosts = {"a", "b"}, .busbw = 9e9},
      {.key = key, .rail = 1, .hosts = {"a", "b"}, .busbw = 3e9, .share = 0.5, .slow = true, .explained_by = {"b"}}};
  Record record;
  record.key = "collective/op=rails";
  record.ranks = {{0, "a", "", {}}, {1, "b", "", {}}};
  record.rails = {Matrix{"bandwidth", "B/s", Better::higher, {0, 1}, {0, 1e9, 1e9, 0}}};
  record.matrix = record.rails.front();
  all.links = {record};
  const Json json = accept_json(all, false);
  EXPECT_EQ(json["rails"], (Json::array({{{"host", "a"},
                                          {"rail", 1},
                                          {"nic", nullptr},
                                          {"gpu", nullptr},
                                          {"send", 1e9},
                                          {"receive", 2e9},
                                          {"floor", 9e8},
                                          {"partners", 3},
                                          {"state", "pass"}}})));
  EXPECT_EQ(json["rail_groups"][1], (Json{{"key", key},
                                          {"rail", 1},
                                          {"hosts", {"a", "b"}},
                                          {"busbw", 3e9},
                                          {"share", 0.5},
                                          {"slow", true},
                                          {"explained_by", {"b"}}}));
  const Document document = accept_document(all);
  const auto section = std::ranges::find(document.sections, "rails", &Section::id);
  ASSERT_NE(section, document.sections.end());
  const auto& table = std::get<Table>(section->blocks.at(1));
  EXPECT_EQ(table.id, "rail-groups");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][1].text, "9 GB/s");
  EXPECT_EQ(table.rows[0][1].tone, Tone::plain);
  EXPECT_EQ(table.rows[0][2].text, "3 GB/s");
  EXPECT_EQ(table.rows[0][2].tone, Tone::bad);
}

}  // namespace
}  // namespace assay::report
