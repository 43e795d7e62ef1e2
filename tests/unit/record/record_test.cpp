// Records: round trip, tolerance of other writers, refusal of what is not understood.
#include "harness/record/record.h"
#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/json/members.h"
#include "tests/support/refusal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace assay {
namespace {

const double nan = std::numeric_limits<double>::quiet_NaN();

Record sample_record() {
  Record record;
  record.key = "gemm/dtype=bf16/m=4096";
  record.family = "gemm";
  record.params = {{"dtype", "bf16"}, {"m", 4096}};
  record.protocol = {{"form", "repeat"}, {"hash", "abc"}};
  record.seed = 18446744073709551615ull;
  record.attempt = 2;
  record.world_ranks = 2;
  record.ranks = {{0, "b", "cpu 0", 0.5},
                  {1, "a", "cpu 1", std::nullopt, "GPU-1", "0000:07:00.0", "mlx5_0:1", "0-3,8", 1}};
  record.conditions = {{"types", "bf16 x bf16 -> bf16"}};
  record.choices = {{"isa", "avx512_bf16"}};
  record.labels = {{"rack", "7"}};
  record.status = Status::failed;
  record.reason = "wrong_elements";
  record.failure = {.kind = FailureKind::wrong_result, .rank = 1, .host = "a"};
  record.comparable = false;
  record.flags = {"oversubscribed"};
  record.samples.values = {1.0, nan, 0.25};
  record.samples.at = {0.0, 1.0, 2.0};
  record.samples.count = 3;
  record.samples.repetitions = 8;
  record.samples.stopped_by = "noise";
  record.samples.disturbed = {1};
  record.samples.throttled = {{0, 2}};
  record.samples.first_touch = {3.5};
  record.metrics = {{"throughput", 1e12, "FLOP/s", Interval{9e11, 1.1e12}, Better::higher, 0.5, std::nullopt},
                    {"latency", std::nullopt, "s", std::nullopt, Better::lower, std::nullopt, std::nullopt}};
  record.checks = {{"wrong_elements", false, 3, 0, {"row 7"}, {{1, 0}}}};
  record.slow_rank = {1, 2.5};
  record.spans = {{"setup", 0.5}, {"measure", 2}};
  record.telemetry["clock"] = {"Hz", {0, 1}, {2e9, std::nullopt}};
  record.matrix = Matrix{"bandwidth", "B/s", Better::higher, {0, 1}, {nan, 1.5e9, 1.4e9, nan}};
  record.started = "2026-01-01T00:00:00Z";
  record.seconds = 2.5;
  return record;
}

Record record_of(std::string_view text) {
  JsonPool pool;
  return Record::from_text(text, pool);
}

TEST(Record, RoundTrips) {
  const Record record = sample_record();
  const std::string line = dump_line(record.to_json());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Record back = record_of(line);
  EXPECT_EQ(dump_line(back.to_json()), line);
  EXPECT_EQ(back.schema, 2);
  EXPECT_EQ(back.conditions, record.conditions);
  EXPECT_EQ(back.choices, record.choices);
  EXPECT_EQ(back.labels, record.labels);
  EXPECT_EQ(back.seed, record.seed);
  EXPECT_EQ(back.samples.values.size(), 3u);
  EXPECT_TRUE(std::isnan(back.samples.values[1]));
  EXPECT_EQ(back.samples.throttled, record.samples.throttled);
  EXPECT_EQ(back.metrics[0].ci95->high, 1.1e12);
  EXPECT_FALSE(back.metrics[1].value.has_value());
  EXPECT_EQ(back.metrics[1].better, Better::lower);
  EXPECT_FALSE(back.telemetry.at("clock").values[1].has_value());
  EXPECT_EQ(back.failure->kind, FailureKind::wrong_result);
  EXPECT_EQ(back.failure->host, "a");
  EXPECT_EQ(back.checks[0].culprits, record.checks[0].culprits);
  EXPECT_EQ(back.slow_rank->rank, 1);
  ASSERT_TRUE(back.matrix);
  EXPECT_EQ(back.matrix->ranks, record.matrix->ranks);
  EXPECT_EQ(back.matrix->at(0, 1), 1.5e9);
  EXPECT_TRUE(std::isnan(back.matrix->at(1, 1)));
  EXPECT_EQ(back.identity().hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(back.identity(), record.identity());
}

TEST(Record, NonFiniteNumbersAreNull) {
  Record record;
  record.metrics = {{"x", std::numeric_limits<double>::infinity(), "1", Interval{nan, 1}, Better::higher, nan, nan}};
  record.seconds = nan;
  const Json json = parse_untrusted(dump_line(record.to_json()));
  EXPECT_TRUE(json["metrics"][0]["value"].is_null());
  EXPECT_TRUE(json["metrics"][0]["ci95"].is_null());
  EXPECT_TRUE(json["metrics"][0]["of_peak"].is_null());
  EXPECT_TRUE(json["seconds"].is_null());
  for (const char* name : {"conditions", "choices", "labels"}) EXPECT_TRUE(json[name].is_object()) << name;
}

// Not counted is not the same as none.
TEST(Record, ThrottledSamplesMayBeUnknown) {
  Record record;
  EXPECT_FALSE(record.to_json()["samples"].contains("throttled"));
  EXPECT_FALSE(record_of(dump_line(record.to_json())).samples.throttled);
  record.samples.throttled.emplace();
  EXPECT_EQ(record_of(dump_line(record.to_json())).samples.throttled, std::vector<int>());
}

TEST(Record, BytesThatAreNotTextStayOnOneLine) {
  Record record;
  record.reason = "stderr: \xff\xfe\x01\n\x80";
  const std::string line = dump_line(record.to_json());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NO_THROW((void)record_of(line));
}

TEST(Record, AbsentMembersTakeDefaultsAndUnknownOnesAreIgnored) {
  const Record record = record_of(R"({"schema":1,"key":"a/b=1","later":{"x":[1]},"metrics":null})");
  EXPECT_EQ(record.key, "a/b=1");
  EXPECT_EQ(record.status, Status::ok);
  EXPECT_EQ(record.attempt, 1);
  EXPECT_TRUE(record.comparable);
  EXPECT_TRUE(record.metrics.empty());
}

std::string names(const Attributes& attributes) {
  std::string joined;
  for (const auto& [name, value] : attributes) joined += (joined.empty() ? "" : " ") + name;
  return joined;
}

// The labels that each family's records had in schema 1, by where they belong.
TEST(Record, LabelsOfSchema1BecomeConditionsChoicesOrLabels) {
  struct Names {
    const char* conditions;
    const char* choices;
    const char* labels;
  };
  const Names cases[] = {
      // collective and pairwise
      {"algorithm members transport", "implementation", "bytes_used count redop root"},
      // gemm
      {"accumulation candidates form libraries not_offered slowest_gpu types weights", "implementation isa",
       "choice peak threads"},
      // peak
      {"candidates scaling", "implementation isa", "threads"},
      // memory
      {"array_bytes hops kernel kernel_search level passes store store_search", "isa", "threads"},
      // dataloader
      {"decoder images mean_bytes", "", ""},
      // transfer
      {"counts gpu_numa_node gpus level numa_node pcie pcie_maximum slowest_pair", "", ""},
      // launch, and a label of the user
      {"rack", "", "threads"},
      // training
      {"data epoch_samples fp8 gpu_trace graph libraries model recipe scoring seq target transport",
       "implementation isa",
       "accumulate choices communication convergence formula global_batch micro_batch peak peak_measured "
       "planned_memory "
       "threads"},
  };
  for (const Names& one : cases) {
    Json labels = Json::object();
    for (const char* list : {one.labels, one.choices, one.conditions}) {
      std::istringstream words(list);
      for (std::string name; words >> name;) labels[name] = "value of " + name;
    }
    // Members of schema 2 are ignored in schema 1.
    const Record record = record_of(dump_line({{"labels", labels}, {"choices", {{"x", "y"}}}, {"schema", 1}}));
    EXPECT_EQ(record.schema, 1);
    EXPECT_EQ(names(record.conditions), one.conditions);
    EXPECT_EQ(names(record.choices), one.choices);
    EXPECT_EQ(names(record.labels), one.labels);
    EXPECT_EQ(Json(record.attributes()).size(), labels.size());
    for (const auto& [name, value] : labels.items()) EXPECT_EQ(record.attribute(name), value.get<std::string>());
    EXPECT_FALSE(record.attribute("absent"));
  }
}

std::string refusal(const std::string& text) {
  return test::refusal<Error>([&] { (void)record_of(text); });
}

TEST(Record, RefusalsNameTheMember) {
  EXPECT_EQ(refusal(R"({"schema":3})"), "schema 3 is not known: this build reads schemas 1 and 2");
  EXPECT_EQ(refusal(R"({"key":"x"})"), "schema 0 is not known: this build reads schemas 1 and 2");
  EXPECT_EQ(refusal(R"({"schema":2,"choices":{"isa":2}})"), "choices.isa: not a string");
  EXPECT_EQ(refusal(R"({"schema":1,"key":7})"), "key: not a string");
  EXPECT_EQ(refusal(R"({"schema":1,"metrics":[{"name":"a","value":"fast"}]})"), "metrics[0].value: not a number");
  EXPECT_EQ(refusal(R"({"schema":1,"samples":{"values":[1,"x"]}})"), "samples.values: not a list of numbers");
  EXPECT_EQ(refusal(R"({"schema":1,"seed":-1})"), "seed: not an integer from 0 on");
  EXPECT_EQ(refusal(R"({"schema":1,"world":{"ranks":99999999999}})"), "world.ranks: not an integer of 31 bits");
  EXPECT_EQ(refusal(R"({"schema":1,"status":"fine"})"), "status: 'fine' is none of ok, skipped, failed, error");
  EXPECT_EQ(refusal(R"({"schema":1,"matrix":{"ranks":[0,1],"values":[[null,1]]}})"),
            "matrix.values: not a row and a column for each rank");
  EXPECT_EQ(refusal(R"({"schema":1,"matrix":{"ranks":[0,1],"values":[[null,1],[2]]}})"),
            "matrix.values: not a row and a column for each rank");
  EXPECT_EQ(refusal(R"({"schema":1,"matrix":{"ranks":[0],"values":[7]}})"), "matrix.values: not a list of numbers");
  EXPECT_EQ(refusal("[1]"), "not an object");
  EXPECT_EQ(refusal("{\"schema\":1"), "not JSON");
  EXPECT_EQ(refusal(R"({"schema":1,"seconds":1e999})"), "not JSON");
  EXPECT_EQ(refusal(std::string(1000000, '[')), "nested deeper than 64");
  EXPECT_EQ(refusal("{\"schema\":1,\"key\":\"\xff\"}"), "not JSON");
}

// Whichever bytes change, the line is rejected with a reason, or the record survives being written and read again.
TEST(Record, HostileBytesAreRejectedOrRoundTrip) {
  const std::string line = dump_line(sample_record().to_json());
  const Rng rng(3, "hostile");
  int read = 0, rejected = 0;
  for (std::uint64_t trial = 0; trial < 4000; ++trial) {
    std::string text = line;
    for (std::uint64_t change = 0; change <= trial % 4; ++change)
      text[rng.below(trial * 8 + change * 2, text.size())] =
          static_cast<char>(rng.below(trial * 8 + change * 2 + 1, 256));
    try {
      const std::string written = dump_line(record_of(text).to_json());
      EXPECT_EQ(dump_line(record_of(written).to_json()), written);
      ++read;
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
      ++rejected;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(rejected, 500);
}

}  // namespace
}  // namespace assay
