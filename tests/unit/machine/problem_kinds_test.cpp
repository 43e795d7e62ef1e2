// The table of kinds of findings, and findings as JSON.
#include "harness/machine/problem_kinds.h"

#include "harness/core/words.h"
#include "harness/json/members.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(ProblemKinds, EachSaysWhatItMeansAndHasAnIdAndACodeOfItsOwn) {
  std::set<std::string> names;
  for (const ProblemKind& kind : problem_kinds()) {
    EXPECT_TRUE(names.insert(kind.id).second) << kind.id;
    EXPECT_FALSE(kind.meaning.empty()) << kind.id;
    EXPECT_EQ(kind.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << kind.id;
    EXPECT_TRUE(kind.area) << kind.id;
    if (kind.code.empty()) continue;
    EXPECT_TRUE(names.insert(kind.code).second) << kind.code;
    EXPECT_EQ(kind.area, area_of(kind.code)) << kind.code;
    EXPECT_TRUE(std::set<std::string>({"isolate", "reset", "monitor"}).contains(kind.action)) << kind.id;
  }
  EXPECT_GE(problem_kinds().size(), 140u);
}

TEST(ProblemKinds, AreFoundById) {
  ASSERT_TRUE(find_kind("xid-fatal"));
  EXPECT_EQ(find_kind("xid-fatal")->severity, Severity::fault);
  EXPECT_EQ(find_kind("xid-fatal")->part, VendorPart::gpu);
  EXPECT_EQ(find_kind("swap")->at_most, Severity::info);
  EXPECT_FALSE(find_kind("swap")->part);
  EXPECT_TRUE(find_kind("gpu-driver")->by_area);
  EXPECT_FALSE(find_kind("no-such-kind"));
}

TEST(ProblemKinds, ACodeNamesItsArea) {
  EXPECT_EQ(area_of("ASSAY-GPU-001"), Area::gpu);
  EXPECT_EQ(area_of("ASSAY-DISK-014"), Area::disk);
  for (const char* text : {"", "ASSAY-", "ASSAY-GPU", "ASSAY-GPU-1", "ASSAY-GPU-0001", "ASSAY-GPU-00a", "ASSAY-gpu-001",
                           "ASSAY-TPU-001", "GPU-001", " ASSAY-GPU-001", "ASSAY--001"})
    EXPECT_FALSE(area_of(text)) << text;
}

TEST(Findings, OfOneListAreSortedByHowBadTheyAre) {
  std::vector<Finding> all = {{.id = "b", .severity = Severity::info},
                              {.id = "c", .severity = Severity::fault},
                              {.id = "a", .severity = Severity::warning, .device = "2"},
                              {.id = "a", .severity = Severity::warning, .device = "1"}};
  EXPECT_TRUE(has_fault(all));
  sort_by_severity(all);
  std::string order;
  for (const Finding& one : all) order += one.id + one.device + " ";
  EXPECT_EQ(order, "c a1 a2 b ");
  EXPECT_FALSE(has_fault({all.begin() + 1, all.end()}));
  EXPECT_EQ(std::min(Severity::fault, Severity::info), Severity::info);
}

TEST(Findings, AreReadAsTheyWereWritten) {
  const Finding one{"xid-fatal", Severity::fault, "seen", "meaning", "fix", "0000:1b:00.0", Area::gpu, "n1"};
  const Json json = json_of(one);
  EXPECT_EQ(json["severity"], "fault");
  EXPECT_EQ(json["area"], "GPU");
  EXPECT_EQ(json_of(read_value<Finding>(json)), json);
  const auto old = read_text<Finding>(R"({"id": "swap", "severity": "warning", "seen": "s"})");  // of an older version
  EXPECT_FALSE(old.area);
  EXPECT_FALSE(json_of(old).contains("area") || json_of(old).contains("host"));
  for (const char* bad : {R"({"severity": "fault"})", R"({"id": "x"})", R"({"id": "x", "severity": "FAULT"})",
                          R"({"id": "x", "severity": "fault", "area": "TPU"})"})
    EXPECT_THROW(read_text<Finding>(bad), Error) << bad;
}

TEST(Findings, OfARunKeepTheNamesThatRunsHadBefore) {
  const Json json = spoilers_json({{"gpu-mig", Severity::warning, "MIG is on", "slower", "off", "0000:1b:00.0"},
                                   {"smt", Severity::info, "two", "shared", "off"}});
  EXPECT_EQ(json[0]["seen"], "0000:1b:00.0: MIG is on");
  EXPECT_EQ(json[0]["effect"], "slower");
  EXPECT_EQ(json[0]["device"], "0000:1b:00.0");
  const auto read = read_spoilers(json);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].severity, Severity::warning);
  EXPECT_EQ(read[0].meaning, "slower");
  EXPECT_EQ(read[1].seen, "two");
  const auto old = read_spoilers(Json::parse(R"([{"severity": "warning", "seen": "swap", "mend": "swapoff"}, 5])"));
  EXPECT_EQ(old.at(0).fix, "swapoff");
  EXPECT_EQ(old.at(1).seen, "");
  EXPECT_EQ(read_spoilers(Json::parse(R"([{"severity": "dire"}])"))[0].severity, Severity::warning);
  EXPECT_TRUE(read_spoilers(Json("text")).empty());
}

}  // namespace
}  // namespace assay
