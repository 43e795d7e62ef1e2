// The audit as a check of an acceptance: what fails a host, and which differences between hosts do.
#include "harness/fitness/cluster/cluster.h"

#include "harness/json/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::fitness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json audited(const std::string& host, std::size_t gpus = 2) {
  Json one = {{"host", host},          {"state", "ok"},          {"error", nullptr}, {"problems", Json::array()},
              {"gpus", Json::array()}, {"events", Json::array()}};
  for (std::size_t i = 0; i < gpus; ++i)
    one["gpus"].push_back({{"pci", "0000:1b:00." + std::to_string(i)}, {"uuid", "GPU-" + host}, {"slot", nullptr}});
  return one;
}

std::vector<AcceptedHost> judged(const Json& audit) {
  std::vector<AcceptedHost> hosts;
  for (const char* name : {"a", "b", "c"}) hosts.push_back({.host = name});
  judge_audit(read_value<AuditedFleet>(audit), hosts);
  return hosts;
}

std::string audit_evidence(const AcceptedHost& host) {
  std::string all;
  for (const std::string& line : host.checks.at("audit").evidence) all += line + "\n";
  return all;
}

TEST(AcceptAudit, FaultsUnreachableHostsAndMissingGpusFail) {
  Json faulty = audited("a"), away = audited("b", 0);
  faulty["problems"] = {{{"id", "xid-fatal"},
                         {"severity", "fault"},
                         {"device", "0000:1b:00.0"},
                         {"seen", "XID 79"},
                         {"meaning", "off the bus"}},
                        {{"id", "thp"}, {"severity", "warning"}, {"seen", "always"}}};
  faulty["events"] = {{{"kind", "xid"}, {"code", 79}, {"device", "0000:1b:00.0"}, {"time", "2026-01-01T00:00:00Z"}}};
  away["state"] = "unreachable", away["error"] = "no route";
  auto hosts = judged({{"hosts", {faulty, away, audited("c")}}, {"drift", Json::array()}});
  EXPECT_EQ(hosts[0].checks["audit"].state, CheckState::fail);
  EXPECT_THAT(hosts[0].problems, ElementsAre("xid-fatal"));
  EXPECT_THAT(hosts[0].xids, ElementsAre("XID 79 of 0000:1b:00.0 at 2026-01-01T00:00:00Z"));
  EXPECT_EQ(hosts[1].checks["audit"].state, CheckState::fail);
  EXPECT_THAT(audit_evidence(hosts[1]), HasSubstr("unreachable: no route"));
  EXPECT_EQ(hosts[2].checks["audit"].state, CheckState::pass);
  hosts = judged({{"hosts", {audited("a"), audited("b"), audited("c", 1)}}});
  EXPECT_EQ(hosts[2].checks["audit"].state, CheckState::fail);
  EXPECT_THAT(audit_evidence(hosts[2]), HasSubstr("1 GPUs, 2 of 3 hosts have 2"));
  hosts = judged({{"hosts", {audited("a"), audited("b")}}});
  EXPECT_THAT(audit_evidence(hosts[2]), HasSubstr("no answer of this host"));
}

TEST(AcceptAudit, AnotherDriverFailsAndAnotherSettingIsMentioned) {
  const Json driver = {
      {"fact", "driver"}, {"majority", "570.86"}, {"count", 2}, {"hosts", {{{"host", "b"}, {"value", "550.1"}}}}};
  const Json setting = {{"fact", "sysctl vm.swappiness"},
                        {"majority", "10"},
                        {"count", 2},
                        {"hosts", {{{"host", "c"}, {"value", nullptr}}}}};
  const Json tie = {
      {"fact", "kernel"}, {"majority", "6.1"}, {"count", 1}, {"hosts", {{{"host", "a"}, {"value", "6.2"}}}}};
  auto hosts = judged({{"hosts", {audited("a"), audited("b"), audited("c")}}, {"drift", {driver, setting, tie}}});
  EXPECT_EQ(hosts[0].checks["audit"].state, CheckState::inconclusive);
  EXPECT_EQ(hosts[1].checks["audit"].state, CheckState::fail);
  EXPECT_THAT(audit_evidence(hosts[1]), HasSubstr("driver is 550.1; 2 of 3 hosts have 570.86"));
  EXPECT_EQ(hosts[2].checks["audit"].state, CheckState::pass);
  EXPECT_THAT(audit_evidence(hosts[2]), HasSubstr("differs: sysctl vm.swappiness is absent"));
}

}  // namespace
}  // namespace assay::fitness
