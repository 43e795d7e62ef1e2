// A failure names who is to blame, in members of its own, or in the words of records that have no such members.
#include "harness/core/error.h"
#include "harness/json/members.h"
#include "harness/record/record.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Record broken(const std::string& reason, std::vector<std::string> flags = {}) {
  Record record;
  record.status = Status::error;
  record.reason = reason;
  record.flags = std::move(flags);
  for (const char* host : {"a", "b", "c", "c-2"})
    record.ranks.push_back({static_cast<int>(record.ranks.size()), host, "", {}});
  return record;
}

Record wrong(std::vector<std::string> detail) {
  Record record = broken("wrong_elements");
  record.status = Status::failed;
  record.checks = {{"sum", true, 0, 0, {"rank 3: fine"}}, {"wrong_elements", false, 1, 0, std::move(detail)}};
  return record;
}

Record read(const Record& record) {
  JsonPool pool;
  return Record::from_text(dump_line(record.to_json()), pool);
}

TEST(Failure, RecordsThatSayItInWordsAreRead) {
  for (const auto& [record, kind, host] :
       {std::tuple(broken("host b is lost: no heartbeat for 30 s"), FailureKind::lost_host, "b"),
        {broken("timeout: rank 1 on b sent no heartbeat for 30 s"), FailureKind::timeout, "b"},
        {broken("not done after 3 s: rank 2 on c-2, in measure", {"timed out"}), FailureKind::timeout, "c-2"},
        {broken("rank 2: killed by SIGSEGV (signal 11) in measure"), FailureKind::crashed, ""},
        {broken("out of memory: rank 2: killed by SIGKILL (signal 9)"), FailureKind::out_of_memory, ""},
        {broken("no such device"), FailureKind::exception, ""},
        {broken("the abc of hosts a1 and xc"), FailureKind::exception, ""},  // parts of words
        {wrong({"row 7"}), FailureKind::wrong_result, ""},
        {wrong({"rank 1: row 7"}), FailureKind::wrong_result, "b"}}) {
    const Record found = read(record);
    ASSERT_TRUE(found.failure) << record.reason;
    EXPECT_EQ(found.failure->kind, kind) << record.reason;
    EXPECT_EQ(found.failure->host, host) << record.reason;
  }
  const Record several = read(broken("host a is lost: x; host c is lost: y; the others have no room"));
  EXPECT_EQ(several.failure->hosts, (std::vector<std::string>{"a", "c"}));
  Record fine = broken("no AMX");
  fine.status = Status::skipped;
  EXPECT_FALSE(read(fine).failure);
}

TEST(Failure, CulpritsAndStragglersThatAreNamedInWordsAreRead) {
  const Record found = read(wrong({"rank 0: from c: element 5; from c-2: element 7", "rank 1: element 5", "no rank"}));
  EXPECT_TRUE(found.checks[0].culprits.empty());
  EXPECT_EQ(found.checks[1].culprits, (std::vector<Culprit>{{0, 2}, {0, 3}, {1, {}}}));
  EXPECT_FALSE(found.failure->rank);
  EXPECT_EQ(read(wrong({"rank 2: from a: element 5"})).failure->rank, 2);
  Record slow = broken("");
  slow.status = Status::ok;
  slow.flags = {"oversubscribed", "slow rank: rank 1 on b took 2.1 times as long as the others"};
  EXPECT_EQ(read(slow).slow_rank->rank, 1);
}

TEST(Failure, MembersGoBeforeWords) {
  Record record = broken("host b is lost: no heartbeat for 30 s", {"slow rank: rank 1 on b took 2 times as long"});
  record.failure = {.kind = FailureKind::crashed, .rank = 2, .host = "c"};
  record.slow_rank = {0, 3};
  const Record found = read(record);
  EXPECT_EQ(found.failure->kind, FailureKind::crashed);
  EXPECT_EQ(found.failure->host, "c");
  EXPECT_EQ(found.slow_rank->rank, 0);
  EXPECT_EQ(record.to_json()["failure"], Json::parse(R"({"kind": "crashed", "rank": 2, "host": "c"})"));
  record.failure = {.kind = FailureKind::launch};
  EXPECT_EQ(record.to_json()["failure"], Json::parse(R"({"kind": "launch", "rank": null, "host": null})"));
  Json unknown = record.to_json();
  unknown["failure"]["kind"] = "x";
  JsonPool pool;
  EXPECT_THROW(Record::from_text(dump_line(unknown), pool), Error);
}

}  // namespace
}  // namespace assay
