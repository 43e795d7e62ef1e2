// Cases in a session: set up once, measured on demand, checked each time; also skips and errors.
#include "harness/bench/session.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace assay {
namespace {

using bench::Session;
using bench::spread;

// Counts what the fake cases of a test did.
struct Log {
  int setups = 0;
  int alive = 0;
  std::int64_t calls = 0;
  bool answer_holds = true;
};
Log seen;

class Fake : public Case {
 public:
  explicit Fake(std::string mood) : mood_(std::move(mood)) { ++seen.alive; }
  ~Fake() override { --seen.alive; }
  std::optional<std::string> prepare(Context&) override {
    return mood_ == "skip" ? std::optional<std::string>("no such instruction set") : std::nullopt;
  }
  void setup(Context& context) override {
    ++seen.setups;
    context.outputs.protocol.cache = Protocol::Cache::hot;
    context.outputs.protocol.warmup_seconds = 0;
    context.outputs.labels["implementation"] = "fake";
    if (mood_ == "throw") throw std::runtime_error("it broke");
  }
  void measure(Sampler& sampler) override {
    sampler.repeat({1, true}, [](Stream&, int) { ++seen.calls; });
  }
  void verify(Checks& checks) override { checks.that("answer", seen.answer_holds, {"element 7"}); }
  std::vector<Metric> metrics(const Measurement& measured) const override { return {time_metric("latency", measured)}; }

 private:
  std::string mood_;
};

Estimate nothing(const Params&, const World&) { return {}; }
std::unique_ptr<Case> make_fake(const Params& params) { return std::make_unique<Fake>(params.text("mood")); }

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    seen = {};
    family_.name = "fake";
    family_.estimate = nothing;
    family_.make = make_fake;
    request_.device = [] { return make_device(DeviceKind::cpu, 0); };
    for (const char* mood : {"well", "skip", "throw", "well"}) {
      PlannedCase planned;
      planned.family = &family_;
      planned.params.set("mood", std::string(mood));
      request_.cases.push_back(planned);
    }
  }

  Family family_;
  BenchRequest request_;
};

TEST_F(SessionTest, SetsUpOnceAndMeasuresAsManyAsAsked) {
  Session session(request_);
  for (const std::int64_t iterations : {1, 10, 100000}) {
    const std::int64_t before = seen.calls;
    ASSERT_EQ(session.open(0), std::nullopt);
    const std::vector<double> times = session.measure(iterations);
    EXPECT_EQ(times.size(), static_cast<std::size_t>(iterations));
    for (const double seconds : times) ASSERT_GT(seconds, 0.0);
    EXPECT_GT(seen.calls, before);
    EXPECT_EQ(session.fault(), std::nullopt);
    EXPECT_EQ(session.metrics().front().name, "latency");
    EXPECT_EQ(session.label(), "fake");
  }
  EXPECT_EQ(seen.setups, 1);
}

TEST_F(SessionTest, KeepsOneCaseAtATime) {
  Session session(request_);
  session.open(0);
  session.open(3);
  EXPECT_EQ(seen.alive, 1);
  EXPECT_EQ(seen.setups, 2);
  session.close();
  EXPECT_EQ(seen.alive, 0);
}

TEST_F(SessionTest, ASkipIsAReason) {
  Session session(request_);
  EXPECT_EQ(session.open(1), "no such instruction set");
  EXPECT_EQ(seen.setups, 0);
  EXPECT_EQ(session.open(0), std::nullopt);
}

TEST_F(SessionTest, AnErrorInSetupLeavesNothingOpen) {
  Session session(request_);
  EXPECT_THROW(session.open(2), std::runtime_error);
  EXPECT_EQ(seen.alive, 0);
}

TEST_F(SessionTest, AWrongAnswerIsNamed) {
  Session session(request_);
  session.open(0);
  session.measure(1);
  seen.answer_holds = false;
  EXPECT_EQ(session.fault(), "answer: element 7");
}

TEST(Spread, EachSampleCoversItsRepetitions) {
  EXPECT_EQ(spread({1, 2, 3}, 2, 5), (std::vector<double>{1, 1, 2, 2, 3}));
  EXPECT_EQ(spread({1, 2}, 1, 5), (std::vector<double>{1, 2, 1, 2, 1}));
  EXPECT_EQ(spread({4}, 1000, 2), (std::vector<double>{4, 4}));
  EXPECT_THROW(spread({}, 1, 1), Error);
}

}  // namespace
}  // namespace assay
