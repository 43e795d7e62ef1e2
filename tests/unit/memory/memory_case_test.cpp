// Memory cases from setup to metrics, with and without an injected fault.
#include "suites/memory/memory.h"
#include "tests/support/case_runner.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

using Changes = std::map<std::string, ParamValue>;

Changes small(const std::string& op, const std::string& store) {
  return {{"op", op}, {"bytes", std::int64_t{100000}}, {"store", store}, {"threads", std::string("all")}};
}

const Family& family() {
  static const Family memory = memory_family();
  return memory;
}

test::Outcome run(const Changes& changes, const std::set<Fault>& faults = {}) {
  const auto comm = make_self_communicator();
  return test::run_case(family(), changes, *comm, faults);
}

TEST(MemoryCase, EveryOpAndStoreGivesAMetricAndTheRightArrays) {
  for (const std::string op : {"read", "write", "copy", "scale", "add", "triad", "latency"})
    for (const std::string store : {"plain", "nontemporal", "auto"}) {
      SCOPED_TRACE(op + " " + store);
      const test::Outcome out = run(small(op, store));
      const bool stores = op != "read" && op != "latency";
      if (!stores && store == "nontemporal") {
        EXPECT_EQ(out.skipped, op + " stores nothing");
        continue;
      }
      ASSERT_FALSE(out.skipped);
      EXPECT_TRUE(out.check("wrong_elements").passed);
      EXPECT_GT(*out.metric(op == "latency" ? "latency" : "bandwidth").value, 0);
      EXPECT_EQ(out.protocol.cache, Protocol::Cache::hot);
      EXPECT_EQ(out.conditions.at("array_bytes"), "99968");  // whole cache lines
      if (stores) {
        if (store != "auto") {
          EXPECT_EQ(out.labels.at("store"), store);
        }
        EXPECT_EQ(out.labels.count("store_search"), store == "auto" ? 1u : 0u);
      }
    }
}

TEST(MemoryCase, OneFlippedBitFailsTheCaseAndIsNamed) {
  for (const std::string op : {"read", "write", "copy", "scale", "add", "triad", "latency"}) {
    SCOPED_TRACE(op);
    const test::Outcome out = run(small(op, "plain"), {Fault::bit_flip});
    const Check& check = out.check("wrong_elements");
    EXPECT_FALSE(check.passed);
    EXPECT_EQ(check.value, 1);
    ASSERT_FALSE(check.detail.empty());
    EXPECT_NE(check.detail[0].find(op == "latency" ? "out of order" : "element 6249 is"), std::string::npos)
        << check.detail[0];
  }
}

TEST(MemoryCase, BandwidthCountsAsStream) {
  for (const auto& [op, arrays] : std::map<std::string, double>{{"read", 1}, {"copy", 2}, {"triad", 3}}) {
    const test::Outcome out = run(small(op, "plain"));
    const double passes = std::stod(out.labels.at("passes"));
    EXPECT_DOUBLE_EQ(*out.metric("bandwidth").value * out.measurement.summary.median, arrays * 99968 * passes);
  }
}

TEST(MemoryCase, LargeArraysAreNotCalledHotAndSmallOnesAreSkipped) {
  Changes large = small("copy", "plain");
  large["bytes"] = family().params[1].defaults[0];
  const test::Outcome out = run(large);
  EXPECT_EQ(out.protocol.cache, Protocol::Cache::none);
  EXPECT_TRUE(out.labels.at("level").starts_with("memory")) << out.labels.at("level");
  EXPECT_EQ(out.labels.at("passes"), "1");

  Changes tiny = small("latency", "auto");
  tiny["bytes"] = std::int64_t{64};
  EXPECT_TRUE(run(tiny).skipped);
  Changes many = small("copy", "auto");
  many["threads"] = std::int64_t{100000};
  EXPECT_TRUE(run(many).skipped);
}

}  // namespace
}  // namespace assay
