// The archive for a vendor: which commands, which records, and that its sums are right.
#include "harness/fitness/cluster/evidence.h"
#include "harness/core/error.h"
#include "harness/core/sha256.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/fitness/sent.h"
#include "harness/json/members.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace assay::fitness {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> texts(const std::vector<VendorCommand>& commands) {
  std::vector<std::string> all;
  for (const VendorCommand& one : commands) {
    EXPECT_FALSE(one.why.empty()) << one.command;
    all.push_back(one.command);
  }
  return all;
}

std::map<std::string, std::string> by_name(const std::vector<ArchiveMember>& members) {
  std::map<std::string, std::string> all;
  for (const ArchiveMember& one : members) all[one.name] = one.bytes;
  EXPECT_EQ(all.size(), members.size());
  return all;
}

TEST(VendorCommands, FitThePart) {
  EXPECT_THAT(texts(vendor_commands({{VendorPart::gpu, {""}}})),
              testing::ElementsAre("nvidia-bug-report.sh", "dcgmi diag -r 3", StartsWith("fieldiag")));
  EXPECT_THAT(texts(vendor_commands({{VendorPart::network, {""}}})),
              testing::ElementsAre(StartsWith("mlxlink -d DEVICE"), "ibdiagnet"));
  EXPECT_THAT(texts(vendor_commands({{VendorPart::memory, {""}}})), Contains("ras-mc-ctl --errors"));
  EXPECT_THAT(texts(vendor_commands({{VendorPart::disk, {"nvme0n1"}}})), Contains("smartctl -x nvme0n1"));
  EXPECT_THAT(vendor_commands({}), IsEmpty());
}

TEST(VendorCommands, NameTheDevicesAndNothingThatAShellTakesForMore) {
  EXPECT_THAT(texts(vendor_commands({{VendorPart::network, {"mlx5_3", "mlx5_4"}}})),
              testing::ElementsAre("mlxlink -d mlx5_3 -m -c -e", "mlxlink -d mlx5_4 -m -c -e", "ibdiagnet"));
  EXPECT_THAT(texts(vendor_commands({{VendorPart::network, {"$(reboot)"}}})),
              testing::ElementsAre("mlxlink -d DEVICE -m -c -e", "ibdiagnet"));
}

AcceptedHost failed_in(const std::string& check, std::vector<FailedPart> culprits) {
  AcceptedHost host{.host = "a"};
  host.gpus = {{"0000:1b:00.0", "GPU-1", "H100", ""}, {"0000:5d:00.0", "GPU-2", "H100", ""}};
  host.checks[check].note(Fitness::fail, "x");
  for (FailedPart& one : culprits) host.checks[check].blame(one.part, one.device);
  return host;
}

TEST(Culprits, AreNamedByIndexAndAddress) {
  const AcceptedHost host =
      failed_in("host", {{"gpu", "0000:5d:00.0"}, {"gpu", "GPU-1"}, {"port", ""}, {"pair", "a - b"}});
  std::vector<std::string> all;
  for (const FailedPart& one : culprits_of(host)) all.push_back(text_of(one, host));
  EXPECT_THAT(all, testing::ElementsAre("GPU 1 (0000:5d:00.0)", "GPU 0 (0000:1b:00.0)", "port", "pair a - b"));
}

TEST(Culprits, APartThatTwoChecksSuspectFails) {
  AcceptedHost host{.host = "a"};
  for (const char* check : {"host", "training"}) {
    host.checks[check].note(Fitness::unsure, "x");
    host.checks[check].blame("gpu", "0000:1b:00.0");
  }
  host.checks["pairs"].note(Fitness::unsure, "x"), host.checks["pairs"].blame("pair", "a - b");
  escalate(host);
  EXPECT_EQ(host.checks["host"].state, Fitness::unsure);
  EXPECT_EQ(host.checks["pairs"].state, Fitness::unsure);
  EXPECT_EQ(host.checks["training"].state, Fitness::fail);
  EXPECT_EQ(host.checks["training"].evidence.back(), "GPU 0000:1b:00.0 is suspected in several checks: host, training");
}

TEST(Culprits, DecideWhichVendorIsAsked) {
  using testing::ElementsAre;
  using testing::Pair;
  // A dead network is no matter of GPUs.
  EXPECT_THAT(vendor_parts(failed_in("pairs", {{"port", "mlx5_0"}}), true),
              ElementsAre(Pair(VendorPart::network, ElementsAre("mlx5_0"))));
  EXPECT_THAT(vendor_parts(failed_in("audit", {}), true), IsEmpty());  // a setting
  EXPECT_THAT(vendor_parts(failed_in("host", {}), true), ElementsAre(Key(VendorPart::gpu)));
  EXPECT_THAT(vendor_parts(failed_in("host", {{"host", ""}}), true), IsEmpty());
  EXPECT_THAT(vendor_parts(failed_in("collectives", {}), true),
              ElementsAre(Key(VendorPart::gpu), Key(VendorPart::network)));
  EXPECT_THAT(vendor_parts(failed_in("collectives", {}), false), ElementsAre(Key(VendorPart::network)));
}

class Evidence : public testing::Test {
 protected:
  Evidence() {
    std::filesystem::create_directory(folder_.path() / "day1");
    std::ofstream(folder_.path() / "day1" / "records.jsonl")
        << R"({"key":"a","ranks":[{"rank":0,"host":"n1"},{"rank":1,"host":"n2"}]})" << '\n'
        << R"({"key":"b","ranks":[{"rank":0,"host":"n1"}],  "odd": 1.50})" << '\n'
        << R"({"key":"n1","ranks":[{"rank":0,"host":"n3"}]})" << '\n'
        << R"({"key":"cut","ranks":[{"rank":0,"host":"n1")";
    input_.host = "n1";
    input_.audit = read_text<AuditedHost>(
        R"({"host":"n1","state":"ok","problems":[{"id":"ecc-uncorrected","severity":"fault","device":"0000:1b:00.0","seen":"2"}],
        "events":[{"time":"2026-11-20T03:12:44Z","kind":"xid","device":"0000:1b:00.0","code":79,"text":"fell off"}],
        "gpus":[{"pci":"0000:1b:00.0","uuid":"GPU-1","serial":"S123"}],"serial":"H7"})");
    input_.environment = {{"os", "Linux"}};
    input_.runs = {folder_.path() / "day1"};
    input_.missed = {{.key = "gemm/m=64",
                      .metric = "throughput",
                      .unit = "FLOP/s",
                      .value = 1e12,
                      .limit = 2e12,
                      .source = "fleet",
                      .reason = "below"}};
    input_.commands = {{"dcgmi diag -r 3", "NVIDIA's tests"}};
  }
  test::TemporaryFolder folder_;
  EvidenceInput input_;
};

TEST_F(Evidence, HoldsWhatTheVendorAsksFor) {
  const auto members = by_name(evidence_members(input_));
  EXPECT_EQ(members.at("n1/records/day1.jsonl"),
            "{\"key\":\"a\",\"ranks\":[{\"rank\":0,\"host\":\"n1\"},{\"rank\":1,\"host\":\"n2\"}]}\n"
            "{\"key\":\"b\",\"ranks\":[{\"rank\":0,\"host\":\"n1\"}],  \"odd\": 1.50}\n");
  EXPECT_THAT(members.at("n1/events.txt"), HasSubstr("2026-11-20T03:12:44Z xid 0000:1b:00.0 fell off"));
  EXPECT_THAT(members.at("n1/commands.txt"), HasSubstr("dcgmi diag -r 3"));
  EXPECT_THAT(members.at("n1/commands.txt"), HasSubstr("# ecc-uncorrected 0000:1b:00.0: 2"));
  EXPECT_EQ(Json::parse(members.at("n1/floors.json"))[0]["limit"], 2e12);
  EXPECT_THAT(members.at("n1/environment.json"), HasSubstr("Linux"));
}

TEST_F(Evidence, TheLogOfTheManagementControllerIsAFileOfItsOwn) {
  input_.audit->bmc = {"# the newest 200 entries; older ones are left out", "1 | Fan #0x30 | Lower Critical"};
  const auto members = by_name(evidence_members(input_));
  EXPECT_EQ(members.at("n1/bmc.txt"),
            "# the newest 200 entries; older ones are left out\n1 | Fan #0x30 | Lower Critical\n");
  EXPECT_THAT(members.at("n1/audit.json"), testing::Not(HasSubstr("Fan")));
}

TEST_F(Evidence, SerialsOnlyIfAskedFor) {
  const std::string without = by_name(evidence_members(input_)).at("n1/audit.json");
  EXPECT_THAT(without, Not(HasSubstr("S123")));
  EXPECT_THAT(without, Not(HasSubstr("H7")));
  EXPECT_THAT(without, HasSubstr("GPU-1"));
  input_.with_serials = true;
  EXPECT_THAT(by_name(evidence_members(input_)).at("n1/audit.json"), HasSubstr("S123"));
}

TEST_F(Evidence, TheManifestHasTheSumOfEachFile) {
  const auto members = by_name(evidence_members(input_));
  std::string sums;
  for (const auto& [name, bytes] : members)
    if (name != "n1/MANIFEST") sums += sha256_hex(bytes) + "  " + name.substr(3) + "\n";
  EXPECT_EQ(members.at("n1/MANIFEST"), sums);
  EXPECT_EQ(tar_bytes(evidence_members(input_)), tar_bytes(evidence_members(input_)));
}

TEST_F(Evidence, SecretsAreMaskedAndWhatLeavesIsTold) {
  const std::string secret = "hunter2";
  std::ofstream(folder_.path() / "day1" / "records.jsonl")
      << R"({"key":"a","log":"one\npassword=hunter2","ranks":[{"rank":0,"host":"n1","uuid":"GPU-2"}]})" << '\n';
  input_.audit->events.front().text = "started with --token hunter2";
  input_.environment["api_key"] = secret;
  const std::string archive = tar_bytes(evidence_members(input_));
  EXPECT_EQ(archive.find(secret), archive.npos);
  // The message is both in the audit and in events.txt.
  EXPECT_EQ(sent_text(archive), "holds the names of 1 host (n1), 2 UUIDs and 3 lines of logs; 4 values are masked");
}

TEST_F(Evidence, WhatIsUnknownIsLeftOut) {
  EvidenceInput bare;
  bare.host = "n9";
  EXPECT_THAT(by_name(evidence_members(bare)), testing::ElementsAre(Key("n9/MANIFEST")));
  bare.runs = {folder_.path() / "day1", folder_.path() / "day1"};
  EXPECT_THAT(by_name(evidence_members(bare)), testing::ElementsAre(Key("n9/MANIFEST")));
  bare.host = "n2";
  EXPECT_THAT(by_name(evidence_members(bare)), Contains(Key("n2/records/day1-2.jsonl")));
}

TEST_F(Evidence, AMissingRunIsAnError) {
  input_.runs = {folder_.path() / "none"};
  EXPECT_THROW(evidence_members(input_), Error);
}

}  // namespace
}  // namespace assay::fitness
