// Audits of many hosts: hostile answers, who differs from the majority, and what it costs.
#include "reports/hosts/audits.h"
#include "harness/json/members.h"
#include "reports/render/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::report {
namespace {

using namespace fitness;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

AuditedHost host(const std::string& name, std::map<std::string, std::string> facts) {
  AuditedHost audited;
  audited.host = name;
  audited.facts = std::move(facts);
  return audited;
}

AuditedFleet fleet_of(std::vector<AuditedHost> hosts, std::vector<Drift> drift = {}) {
  return {.hosts = std::move(hosts), .drift = std::move(drift)};
}

std::vector<std::string> differing(const Drift& drift) {
  std::vector<std::string> names;
  for (const auto& one : drift.hosts) names.push_back(one.host + "=" + one.value.value_or("-"));
  return names;
}

TEST(ReadAudit, TakesWhatTheLocalAuditPrints) {
  const AuditedHost read = read_audit("n1", R"({"schema":1,"cpu":{},"audit":{
    "problems":[{"id":"xid-fatal","severity":"fault","device":"0000:1b:00.0","seen":"XID 79","meaning":"m","fix":"f"},
                {"id":"swap","severity":"warning"}],
    "facts":{"driver":"570","kernel":"6.1"},"gpus":[{"pci":"0000:1b:00.0","uuid":"GPU-1"}],
    "events":[{"time":null,"kind":"xid","code":79,"text":"t"}]}})");
  EXPECT_EQ(read.state, AuditState::ok);
  EXPECT_EQ(read.count(Severity::fault), 1U);
  EXPECT_EQ(read.facts.at("driver"), "570");
  EXPECT_EQ(read.gpus.at(0).uuid, "GPU-1");
  EXPECT_FALSE(read.events.at(0).unix_seconds);
  EXPECT_EQ(read.events[0].count, 1);
  EXPECT_EQ(fleet_of({read}).code(), ExitCode::failed);
}

TEST(ReadAudit, NoFaultIsCutOffALongAnswer) {
  std::string problems;
  for (int i = 0; i < 12'000; ++i) problems += R"({"id":"disk-errors","severity":"warning"},)";
  const AuditedHost read = read_audit(
      "n1", R"({"audit":{"problems":[)" + problems + R"({"id":"xid-fatal","severity":"fault"}],"facts":{}}})");
  EXPECT_EQ(read.count(Severity::fault), 1U);
  EXPECT_EQ(fleet_of({read}).code(), ExitCode::failed);
}

TEST(ReadAudit, ABannerIsLeftOutAndKept) {
  const std::string answer = R"({"audit":{"problems":[],"facts":{"driver":"570"}}})";
  for (const std::string& text : std::vector<std::string>{
           "Welcome to n1\n{ not JSON }\n" + answer + "\nbye\n", "hello\n" + answer, answer + "\nbye\n",
           "hello\n{\n\"audit\":{\"problems\":[],\n\"facts\":{\"driver\":\"570\"}}\n}\n"}) {
    const AuditedHost read = read_audit("n1", text);
    EXPECT_EQ(read.state, AuditState::ok) << text << read.error;
    EXPECT_EQ(read.facts.at("driver"), "570");
    EXPECT_FALSE(read.banner.empty());
    EXPECT_EQ(read.banner.find("audit"), std::string::npos) << read.banner;
  }
  EXPECT_EQ(read_audit("n1", answer + "\n").banner, "");
  AuditedHost shown = read_audit("n1", "Welcome\n" + answer);
  EXPECT_NE(render_terminal(audit_document(fleet_of({shown})), {}).find("n1: Welcome"), std::string::npos);
}

TEST(ReadAudit, AnythingElseIsAnError) {
  for (const std::string text :
       {"", "no json", "[]", "{}", "null", R"({"audit":[]})", R"({"audit":{"problems":[]}})",
        R"({"audit":{"problems":{},"facts":{}}})", R"({"audit":{"problems":[],"facts":{"a":1}}})",
        R"({"audit":{"problems":[{"id":5,"severity":"fault"}],"facts":{}}})",
        R"({"audit":{"problems":[{"id":"x","severity":"grave"}],"facts":{}}})",
        R"({"audit":{"problems":[],"facts":{},"events":[{"time":"yesterday"}]}})"}) {
    const AuditedHost read = read_audit("n1", text);
    EXPECT_EQ(read.state, AuditState::error) << text;
    EXPECT_FALSE(read.error.empty()) << text;
  }
  EXPECT_EQ(read_audit("n1", std::string(100'000, '[')).state, AuditState::error);
}

TEST(ReadAudit, HostileTextsAreCutAndMadeHarmless) {
  const AuditedHost read = read_audit("n1", R"({"audit":{"problems":[{"id":"x\u001b[2J","severity":"fault","seen":")" +
                                                std::string(100'000, 'a') + R"("}],"facts":{"driver":"1\n2"}}})");
  EXPECT_EQ(read.problems.at(0).id.find('\x1b'), std::string::npos);
  EXPECT_LT(read.problems[0].seen.size(), 3'000U);
  EXPECT_EQ(read.facts.at("driver").find('\n'), std::string::npos);
  const std::string terminal = render_terminal(audit_document(fleet_of({read})), {});
  EXPECT_EQ(terminal.find('\x1b'), std::string::npos);
}

TEST(Drift, NamesWhoDiffersFromTheMajority) {
  const auto drift =
      drift_of({host("n1", {{"driver", "570"}, {"kernel", "6.1"}}), host("n2", {{"driver", "535"}, {"kernel", "6.1"}}),
                host("n3", {{"driver", "570"}, {"kernel", "6.1"}}), host("n4", {{"kernel", "6.1"}})});
  ASSERT_EQ(drift.size(), 1U);
  EXPECT_EQ(drift[0].fact, "driver");
  EXPECT_EQ(drift[0].majority, "570");
  EXPECT_EQ(drift[0].count, 2U);
  EXPECT_THAT(differing(drift[0]), ElementsAre("n2=535", "n4=-"));
}

TEST(Drift, ATieHasNoMajority) {
  const auto drift = drift_of({host("n1", {{"driver", "570"}}), host("n2", {{"driver", "535"}})});
  ASSERT_EQ(drift.size(), 1U);
  EXPECT_TRUE(drift[0].tie);
  EXPECT_FALSE(drift[0].majority);
  EXPECT_THAT(differing(drift[0]), ElementsAre("n1=570", "n2=535"));
  EXPECT_THAT(render_terminal(audit_document(fleet_of({host("n1", {}), host("n2", {})}, drift)), {}),
              HasSubstr("no majority"));
}

TEST(Drift, WhatDiffersByNatureIsNone) {
  EXPECT_THAT(
      drift_of({host("n1", {{"hostname", "n1"}, {"gpu_uuid", "1"}, {"Board Serial", "x"}, {"mac address", "0"}}),
                host("n2", {{"hostname", "n2"}, {"gpu_uuid", "2"}, {"Board Serial", "y"}, {"mac address", "1"}})}),
      IsEmpty());
}

TEST(Drift, HostsThatDidNotAnswerDoNotCount) {
  const auto silent = no_audit("n3", AuditState::unreachable, "no answer within 60 s");
  EXPECT_THAT(drift_of({host("n1", {{"driver", "570"}}), host("n2", {{"driver", "570"}}), silent}), IsEmpty());
  EXPECT_EQ(fleet_of({host("n1", {}), silent}).code(), ExitCode::failed);
  EXPECT_EQ(fleet_of({host("n1", {})}).code(), ExitCode::ok);
  const std::string text = render_terminal(audit_document(fleet_of({host("n1", {}), silent})), {});
  EXPECT_THAT(text, HasSubstr("unreachable"));
  EXPECT_THAT(text, HasSubstr("no answer within 60 s"));
}

// A run on each of four hosts, whose medians differ by the case: n4 runs gemm at half the others' rate.
RunSet runs_on(const std::vector<std::pair<std::string, double>>& rates) {
  RunData run;
  run.dir = "night";
  run.run = Json{{"schema", 2},
                 {"id", "r"},
                 {"argv", {"assay", "run", "--each-host"}},
                 {"each_host", true},
                 {"hosts", Json::array()}};
  for (const char* key : {"gemm/m=64", "memory/op=copy"})
    for (const auto& [name, rate] : rates) {
      Record record;
      record.key = key;
      record.family = std::string(key).substr(0, std::string(key).find('/'));
      record.ranks = {{0, name, "CPU", 1.0}};
      record.started = "2026-01-01T00:00:00Z";
      record.metrics.emplace_back();
      record.metrics[0].name = "throughput";
      record.metrics[0].unit = "FLOP/s";
      record.metrics[0].value = record.family == "gemm" ? rate : 100 + rate;
      run.records.push_back(record);
      run.lines.push_back(static_cast<int>(run.lines.size()) + 1);
    }
  for (const auto& [name, rate] : rates) run.run["hosts"].push_back({{"name", name}});
  std::vector<RunData> all;
  all.push_back(std::move(run));
  return RunSet(std::move(all));
}

TEST(Drift, TheMostAffectedFigureIsNamed) {
  std::vector<Drift> drift = drift_of({host("n1", {{"driver", "570"}}), host("n2", {{"driver", "570"}}),
                                       host("n3", {{"driver", "570"}}), host("n4", {{"driver", "535"}})});
  add_effects(drift, runs_on({{"n1", 10}, {"n2", 10}, {"n3", 12}, {"n4", 5}}));
  ASSERT_TRUE(drift.at(0).effect);
  EXPECT_THAT(drift[0].effect->title, HasSubstr("64"));
  EXPECT_DOUBLE_EQ(drift[0].effect->ratio, 0.5);
  EXPECT_EQ(drift[0].effect->differing, 1U);
  EXPECT_EQ(drift[0].effect->others, 3U);
  EXPECT_THAT(render_terminal(audit_document(fleet_of({}, drift)), {.colour = false, .width = 200}),
              HasSubstr("0.5 times the others' median (1 of 4 hosts)"));
}

TEST(Drift, NoEffectWithoutFiguresOfBothSides) {
  std::vector<Drift> drift =
      drift_of({host("n1", {{"driver", "570"}}), host("n2", {{"driver", "570"}}), host("n4", {{"driver", "535"}})});
  add_effects(drift, runs_on({{"n1", 10}, {"n2", 10}}));
  EXPECT_FALSE(drift.at(0).effect);
}

TEST(AuditsJson, HasTheContractsMembers) {
  std::vector<AuditedHost> hosts = {host("n1", {{"driver", "570"}}), host("n2", {{"driver", "570"}}),
                                    host("n3", {{"driver", "5"}})};
  const Json json = json_of(fleet_of(hosts, drift_of(hosts)));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["hosts"][0]["state"], "ok");
  EXPECT_TRUE(json["hosts"][0]["error"].is_null());
  EXPECT_EQ(json["drift"][0]["majority"], "570");
  EXPECT_EQ(json["drift"][0]["count"], 2);
  EXPECT_EQ(json["drift"][0]["hosts"], Json::parse(R"([{"host":"n3","value":"5"}])"));
}

TEST(AuditsJson, IsReadAsItWasWritten) {
  AuditedHost one = read_audit("n1", R"({"audit":{
    "problems":[{"id":"xid-fatal","severity":"fault","device":"0000:1b:00.0","seen":"s","meaning":"m","fix":"f"}],
    "facts":{"driver":"570"},"gpus":[{"pci":"0000:1b:00.0","uuid":null}],"serial":"S",
    "events":[{"time":"2026-11-20T03:12:44Z","first":null,"count":2,"kind":"xid","code":79,"text":"t"}]}})");
  EXPECT_EQ(one.problems.at(0).host, "n1");
  AuditedFleet fleet = fleet_of({one, no_audit("n2", AuditState::error, "why"), host("n3", {{"driver", "5"}})});
  fleet.drift = drift_of(fleet.hosts);
  const Json json = json_of(fleet);
  EXPECT_EQ(json["hosts"][0]["events"][0]["time"], "2026-11-20T03:12:44Z");
  EXPECT_EQ(json_of(read_value<AuditedFleet>(json)), json);
}

}  // namespace
}  // namespace assay::report
