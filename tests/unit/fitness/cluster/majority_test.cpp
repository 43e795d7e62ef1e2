// What most hosts have: members, lists, sizes, ties, and hosts of another kind.
#include "harness/fitness/cluster/majority.h"

#include "harness/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::fitness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Json bought =
    Json::parse(R"({"schema":1,"cpu":{"model":"X"},"cpus":{"exactly":4},"memory":"503GiB","kernel":"6.8",
  "gpus":{"count":{"exactly":8},"name":"H100","vbios":"96"},"rails":[{"board_id":"M","count":{"exactly":8}}],
  "mounts":[{"at":"/data","type":"lustre"},{"at":"/home","type":"nfs"}]})");

// Without the order of members.
nlohmann::json unordered(const Json& json) { return nlohmann::json::parse(json.dump()); }

std::vector<AuditedHost> fleet(const std::vector<Json>& changes) {
  std::vector<AuditedHost> hosts;
  for (const Json& change : changes) {
    AuditedHost& one = hosts.emplace_back();
    one.host = "n" + std::to_string(hosts.size());
    Json own = bought;
    own.merge_patch(change);
    one.inventory = own;
  }
  return hosts;
}
const Json same = Json::object();

TEST(FleetMajority, OfEqualHostsIsWhatTheyHave) {
  const Majority found = majority_of(fleet({same, same, same}));
  EXPECT_EQ(unordered(found.expectation), unordered(bought));
  EXPECT_THAT(found.hosts, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_EQ(unordered(majority_of(fleet({same})).expectation), unordered(bought));
}

TEST(FleetMajority, OneThatDiffersIsOutvoted) {
  const Json odd = {{"kernel", "5.1"},
                    {"memory", "400GiB"},
                    {"rails", {{{"board_id", "M"}, {"count", {{"exactly", 7}}}}}},
                    {"mounts", {{{"at", "/home"}, {"type", "nfs"}}, {{"at", "/mine"}, {"type", "nfs"}}}},
                    {"gpus", {{"vbios", nullptr}}}};
  const Majority found = majority_of(fleet({same, odd, same}));
  EXPECT_EQ(unordered(found.expectation), unordered(bought));
  EXPECT_THAT(found.notes, IsEmpty());
  EXPECT_THAT(found.hosts, testing::SizeIs(3));
}

TEST(FleetMajority, OfMemoryIsWhatMoreThanHalfHaveAtLeast) {
  const auto memory = [](const char* size) { return Json{{"memory", size}}; };
  EXPECT_EQ(majority_of(fleet({memory("503GiB"), memory("504GiB")})).expectation["memory"], "503GiB");
  EXPECT_EQ(majority_of(fleet({memory("503GiB"), memory("504GiB"), memory("2TiB")})).expectation["memory"], "504GiB");
  EXPECT_EQ(majority_of(fleet({memory("1GiB"), {{"memory", nullptr}}})).expectation.count("memory"), 0u);
}

TEST(FleetMajority, ATieIsLeftOutAndSaid) {
  const Majority found = majority_of(fleet({same, {{"kernel", "5.1"}}}));
  EXPECT_FALSE(found.expectation.contains("kernel"));
  EXPECT_THAT(found.notes, ElementsAre("not in expect.json: kernel: no value has a majority: 1 host 6.8, 1 host 5.1"));
  EXPECT_THAT(found.hosts, testing::SizeIs(2));
  EXPECT_THAT(majority_of(fleet({same, {{"mounts", Json::array()}}})).notes,
              ElementsAre(HasSubstr("mounts"), HasSubstr("mounts")));
}

TEST(FleetMajority, HostsOfAnotherKindAreNamed) {
  const Json other = {{"gpus", {{"name", "A100"}, {"count", {{"exactly", 4}}}}}};
  const Majority found = majority_of(fleet({same, same, same, other, other}));
  EXPECT_EQ(found.expectation["gpus"]["name"], "H100");
  EXPECT_THAT(found.hosts, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(found.notes, ElementsAre(testing::AllOf(HasSubstr("not of n4, n5"), HasSubstr("gpus.count"))));
  const Majority half = majority_of(fleet({same, other}));
  EXPECT_THAT(half.hosts, IsEmpty());
  EXPECT_FALSE(half.expectation["gpus"].contains("name"));
  EXPECT_THAT(half.notes, testing::Contains(HasSubstr("none has a majority")));
}

TEST(FleetMajority, HostsWithoutAnAnswerDoNotCount) {
  auto hosts = fleet({same, {{"kernel", "5.1"}}, {{"kernel", "5.1"}}});
  hosts[1].state = AuditState::unreachable;
  hosts[2].inventory = Json();
  EXPECT_EQ(unordered(majority_of(hosts).expectation), unordered(bought));
  EXPECT_TRUE(majority_of({}).expectation.is_null());
}

}  // namespace
}  // namespace assay::fitness
