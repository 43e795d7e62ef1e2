#include "harness/record/protocol.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

namespace assay {
namespace {

TEST(Protocol, HashDoesNotDependOnOrderOrNumberFormat) {
  Protocol protocol;
  protocol.details["isa"] = "avx512";
  const Json json = protocol.to_json();
  EXPECT_EQ(json["hash"], protocol.hash());
  EXPECT_EQ(protocol_hash(Json::parse(json.dump())), protocol.hash());

  Json reversed;
  for (auto it = json.rbegin(); it != json.rend(); ++it) reversed[it.key()] = it.value();
  EXPECT_EQ(protocol_hash(reversed), protocol.hash());

  Json rewritten = json;
  rewritten["max_seconds"] = 3;  // was 3.0
  EXPECT_EQ(protocol_hash(rewritten), protocol.hash());
}

// Records of all versions are compared by their hashes.
TEST(Protocol, HashesStayAsTheyWere) {
  Protocol protocol;
  protocol.timer = "cuda_event";
  protocol.set_gate(1);
  EXPECT_EQ(protocol.hash(), "b06cf6f3fcd29908");
}

TEST(Protocol, EveryFieldChangesTheHash) {
  const Protocol base;
  std::set<std::string> hashes = {base.hash()};
  const auto differs = [&](auto change) {
    Protocol other = base;
    change(other);
    return hashes.insert(other.hash()).second;
  };
  EXPECT_TRUE(differs([](Protocol& p) { p.form = Protocol::Form::steps; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.data = "zeros"; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.cache = Protocol::Cache::hot; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.batching = Protocol::Batching::isolated; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.batching = Protocol::Batching::graph; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.timer = "steady_clock"; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.warmup_seconds = 1; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.min_samples = 31; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.max_samples = 31; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.max_seconds = 4; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.target_relative_ci = 0.02; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.details["store"] = "plain"; }));
  EXPECT_TRUE(differs([](Protocol& p) { p.details["store"] = "nontemporal"; }));
}

TEST(Protocol, ADetailNamedLikeAFieldIsRefused) {
  Protocol protocol;
  protocol.details["cache"] = "x";
  EXPECT_THROW(protocol.to_json(), Error);
}

}  // namespace
}  // namespace assay
