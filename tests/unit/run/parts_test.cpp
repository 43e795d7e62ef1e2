// Merging the ranks' parts, messages, exit codes.
#include "harness/core/error.h"
#include "harness/json/members.h"
#include "harness/run/case_message.h"
#include "harness/run/results.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Record part(int rank, Status status = Status::ok, const std::string& reason = "") {
  Record record;
  record.world_ranks = 3;
  record.ranks = {{rank, "h", "cpu", 1.0 + rank}};
  record.status = status;
  record.reason = reason;
  return record;
}

TEST(MergeParts, TheWorstStatusWinsAndNamesItsRank) {
  const Record whole = merge_parts({part(2, Status::failed, "held"), part(0), part(1, Status::skipped, "no")});
  EXPECT_EQ(whole.status, Status::failed);
  EXPECT_EQ(whole.reason, "rank 2: held");
  ASSERT_EQ(whole.ranks.size(), 3u);
  EXPECT_EQ(whole.ranks[2].median, 3.0);
  EXPECT_THROW(merge_parts({part(1)}), Error);
  EXPECT_THROW(merge_parts({}), Error);
}

TEST(MergeParts, ACheckHoldsWhenItHoldsOnEveryRank) {
  Record a = part(0), b = part(1), c = part(2);
  a.checks = {{"error", true, 0.1, 1.0, {}}};
  b.checks = {{"error", false, 3.0, 1.0, {"row 7"}}};
  c.checks = {{"error", true, 0.2, 1.0, {}}, {"own", true, {}, {}, {}}};
  b.flags = {"odd"};
  b.comparable = false;
  const Record whole = merge_parts({a, b, c});
  ASSERT_EQ(whole.checks.size(), 2u);
  EXPECT_FALSE(whole.checks[0].passed);
  EXPECT_EQ(whole.checks[0].value, 3.0);
  EXPECT_EQ(whole.checks[0].detail, std::vector<std::string>{"rank 1: row 7"});
  EXPECT_EQ(whole.flags, std::vector<std::string>{"odd"});
  EXPECT_FALSE(whole.comparable);
}

TEST(MergeParts, TrafficOfThePortsOfAllHostsIsKept) {
  Record a = part(0), b = part(1), c = part(2);
  a.ports = {{"h1", "mlx5_0 port 1", 10, 20, 1.0}};
  c.ports = {{"h2", "mlx5_0 port 1", 1, 20, 0.1}};
  const Record whole = merge_parts({a, b, c});
  ASSERT_EQ(whole.ports.size(), 2u);
  EXPECT_FALSE(whole.ports[0].too_little());
  EXPECT_TRUE(whole.ports[1].too_little());
}

TEST(MergeParts, ACheckThatFailsPointsToItsRankUnlessItSaysWhich) {
  Record a = part(0), b = part(1, Status::failed), c = part(2);
  b.checks = {{"error", false, 3.0, 1.0, {"row 7"}}};
  Record whole = merge_parts({a, b, c});
  EXPECT_EQ(whole.checks[0].culprits, (std::vector<Culprit>{{1}}));
  EXPECT_EQ(whole.failure->kind, FailureKind::wrong_result);
  EXPECT_EQ(whole.failure->rank, 1);
  EXPECT_EQ(whole.failure->host, "h");
  // A check of the whole world, which every rank makes.
  for (Record* one : {&a, &b, &c})
    one->status = Status::failed, one->checks = {{"sum", false, 1, 0, {}, {{0, 2}, {1, 2}}}};
  a.checks[0].detail = {"rank 0: from h", "rank 1: from h"};
  whole = merge_parts({a, b, c});
  EXPECT_EQ(whole.checks[0].culprits, (std::vector<Culprit>{{0, 2}, {1, 2}}));
  EXPECT_FALSE(whole.failure->rank);
  Record broken = part(1, Status::error, "threw");
  broken.failure = {.kind = FailureKind::out_of_memory, .rank = 1, .host = "h"};
  EXPECT_EQ(merge_parts({a, broken, c}).failure->kind, FailureKind::out_of_memory);
  EXPECT_FALSE(merge_parts({part(0), part(1)}).failure);
}

TEST(MergeParts, SettingsThatOneHostAloneHasAreConditionsToo) {
  Record a = part(0), b = part(1), c = part(2);
  a.conditions = {{"NCCL_ALGO", "Ring"}, {"root", "0"}};
  b.conditions = {{"NCCL_ALGO", "Ring"}};
  c.conditions = {{"NCCL_ALGO", "Tree"}, {"NCCL_PROTO", "LL"}, {"root", "2"}};
  const Record same = merge_parts({a, b});
  EXPECT_EQ(same.conditions, a.conditions);
  EXPECT_TRUE(same.flags.empty());
  const Record whole = merge_parts({a, b, c});
  EXPECT_EQ(whole.conditions, (Attributes{{"NCCL_ALGO", "not the same on all ranks"},
                                          {"NCCL_PROTO", "not the same on all ranks"},
                                          {"root", "0"}}));
  EXPECT_EQ(whole.flags, (std::vector<std::string>{"NCCL_ALGO is not the same on all ranks: rank 2 has Tree",
                                                   "NCCL_PROTO is not the same on all ranks: rank 2 has LL"}));
  const Record lacking = merge_parts({a, part(1)});
  EXPECT_EQ(lacking.flags, std::vector<std::string>{"NCCL_ALGO is not the same on all ranks: rank 1 has none"});
}

TEST(MergeParts, ErrorsOfAllHostsAreKeptAndThoseOfASharedGpuCountOnce) {
  Record a = part(0), b = part(1), c = part(2);
  a.errors = {{"h1", "eth0", "carrier_down", 1}, {"h1", "0000:1b:00.0", "xid_79", 1}};
  b.errors = {{"h1", "0000:1b:00.0", "xid_79", 2}};
  c.errors = {{"h2", "eth0", "carrier_down", 3}};
  const Record whole = merge_parts({a, b, c});
  ASSERT_EQ(whole.errors.size(), 3u);
  EXPECT_EQ(whole.errors[1].count, 2u);
  EXPECT_EQ(whole.errors[2].host, "h2");
  JsonPool pool;
  EXPECT_EQ(Record::from_text(whole.to_json().dump(), pool).errors[2].count, 3u);
  EXPECT_FALSE(part(0).to_json().contains("errors"));
}

TEST(MergeParts, ASampleIsThrottledIfItWasOnAnyRank) {
  Record a = part(0), b = part(1), c = part(2);
  b.samples.throttled = {{1, 4}};
  c.samples.throttled = {{0, 4}};
  EXPECT_EQ(merge_parts({a, b, c}).samples.throttled, (std::vector<int>{0, 1, 4}));
  c.samples.throttled = b.samples.throttled = std::vector<int>();
  EXPECT_EQ(merge_parts({a, b, c}).samples.throttled, std::vector<int>());
  EXPECT_FALSE(merge_parts({part(0), part(1)}).samples.throttled);
}

// The message after encoding and decoding.
template <typename T>
T sent(const T& message) {
  return std::get<T>(decode(encode(message)));
}

TEST(Messages, AnOrderArrivesUnchanged) {
  Family family;
  family.name = "f";
  CaseOrder order;
  order.family = &family;
  order.params.set("n", std::int64_t{4096});
  order.params.set("x", 3.0);
  order.params.set("on", true);
  order.params.set("op", std::string("read"));
  order.key = order.params.key("f");
  order.world = {4, 2, 8};
  order.seed = 18446744073709551615ull;
  order.attempt = 3;
  order.protocol.min_samples = 7;
  order.labels = {{"a", "b"}};
  order.flags = {"oversubscribed"};
  order.faults = {Fault::hang, Fault::slow_rank};
  order.peaks = {{"k", "f32", "avx2", true, 1, 2, 1e11}};
  const Family* families = &family;
  const CaseOrder back = order_from(sent(to_message(order, 5)), std::span(families, 1));
  EXPECT_EQ(back.params.key("f"), order.key);
  EXPECT_EQ(back.params.real("x"), 3.0);
  EXPECT_EQ(back.seed, order.seed);
  EXPECT_EQ(back.world.nodes, 2);
  EXPECT_EQ(back.attempt, 3);
  EXPECT_EQ(back.protocol.min_samples, 7);
  EXPECT_FALSE(back.protocol.max_seconds.has_value());
  EXPECT_EQ(back.faults, order.faults);
  ASSERT_EQ(back.peaks.size(), 1u);
  EXPECT_EQ(back.peaks[0].rate, 1e11);
  EXPECT_THROW(order_from(message::Case{.family = "other"}, std::span(families, 1)), Error);
}

TEST(Messages, AFileArrivesUnchanged) {
  const auto back = sent(message::FileText{"mllog/x.log", ":::MLLOG {}\n", true});
  EXPECT_EQ(back.name, "mllog/x.log");
  EXPECT_EQ(back.text, ":::MLLOG {}\n");
  EXPECT_TRUE(back.replace);
}

TEST(Messages, MalformedEntriesAreRefused) {
  const std::vector<trace::Entry> entries = {{"setup", trace::Category::phase, 7, 1000, 20, 1}};
  const auto back = sent(message::Timeline{entries}).entries;
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].name, "setup");
  EXPECT_EQ(back[0].duration_ns, 20);
  for (const char* text :
       {R"({"type":"timeline"})", R"({"type":"timeline","entries":7})", R"({"type":"timeline","entries":[[1,2]]})",
        R"({"type":"timeline","entries":[["a",1,2,3,"x",5]]})"})
    EXPECT_THROW(decode(text), Error) << text;
}

TEST(ExitCodeOf, IsThatOfTheWorstFinalRecord) {
  RunData data;
  const auto add = [&](const std::string& key, Status status) {
    Record record;
    record.key = key;
    record.status = status;
    data.records.push_back(record);
  };
  add("a", Status::ok);
  add("b", Status::skipped);
  EXPECT_EQ(exit_code_of(data, 2), ExitCode::ok);
  EXPECT_EQ(exit_code_of(data, 3), ExitCode::no_data);
  add("c", Status::error);
  EXPECT_EQ(exit_code_of(data, 4), ExitCode::broken);
  add("d", Status::failed);
  EXPECT_EQ(exit_code_of(data, 4), ExitCode::failed);
  add("d", Status::ok);
  add("c", Status::ok);
  EXPECT_EQ(exit_code_of(data, 4), ExitCode::ok);
}

}  // namespace
}  // namespace assay
