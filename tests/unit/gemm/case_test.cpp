// Gemm and peak cases from setup to metrics, as a worker runs them.
#include "harness/comm/communicator.h"
#include "harness/core/error.h"
#include "harness/core/whole_number.h"
#include "suites/gemm/gemm.h"
#include "suites/peak/peak.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace assay {
namespace {

struct Outcome {
  std::optional<std::string> skipped;
  Protocol protocol;
  Attributes choices, labels;
  std::vector<Check> checks;
  std::vector<Metric> metrics;
  Measurement measurement;

  bool passed() const {
    return std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.passed; });
  }
  const Check& check(const std::string& name) const {
    return *std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.name == name; });
  }
};

struct Request {
  std::set<Fault> faults;
  std::vector<MeasuredPeak> peaks;
  std::string data = "normal";
};

Outcome run(const Family& family, const std::map<std::string, ParamValue>& given, const Request& request = {}) {
  Params params;
  for (const ParamSpec& spec : family.params) {
    if (!spec.devices.empty()) continue;
    const auto value = given.find(spec.name);
    params.set(spec.name, value != given.end() ? value->second : spec.defaults.front());
  }
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  Context context{*device, *comm};
  context.inputs = {.world = {}, .seed = 7, .peaks = request.peaks, .faults = request.faults};
  context.outputs.protocol.data = request.data;
  context.outputs.protocol.max_seconds = 0.05;
  context.outputs.protocol.warmup_seconds = 0.001;
  context.outputs.protocol.min_samples = 6;
  Outcome outcome;
  const auto work = family.make(params);
  outcome.skipped = work->prepare(context);
  if (outcome.skipped) return outcome;
  work->setup(context);
  Sampler sampler(*device, *comm, context.outputs.protocol);
  work->measure(sampler);
  Checks checks;
  work->verify(checks);
  outcome.measurement = sampler.measurement();
  outcome.metrics = work->metrics(outcome.measurement);
  outcome.checks = checks.all();
  outcome.protocol = context.outputs.protocol;
  outcome.choices = context.outputs.choices;
  outcome.labels = context.outputs.labels;
  return outcome;
}

Outcome gemm(std::map<std::string, ParamValue> given, const Request& request = {}) {
  for (const auto& [name, value] : {std::pair{"m", 96}, std::pair{"n", 80}, std::pair{"k", 72}})
    given.emplace(name, std::int64_t{value});
  return run(gemm_family(), given, request);
}

using namespace std::string_literals;

TEST(GemmCase, EveryDtypeAndTransposeIsMeasuredAndPasses) {
  for (const std::string dtype : {"f64", "f32", "bf16", "int8"})
    for (const std::string transpose : {"nn", "nt", "tn", "tt"}) {
      const Outcome outcome = gemm({{"dtype", dtype}, {"transpose", transpose}});
      if (outcome.skipped) {
        std::cout << "[ skipped ] " << dtype << ": " << *outcome.skipped << "\n";
        continue;
      }
      EXPECT_TRUE(outcome.passed()) << dtype << " " << transpose;
      EXPECT_EQ(outcome.checks.size(), 3u);
      ASSERT_FALSE(outcome.metrics.empty());
      const Metric& throughput = outcome.metrics.front();
      EXPECT_EQ(throughput.name, "throughput");
      EXPECT_EQ(throughput.unit, std::string_view(dtype) == "int8" ? "OP/s" : "FLOP/s");
      EXPECT_NEAR(*throughput.value * outcome.measurement.summary.median, 2.0 * 96 * 80 * 72, 1e-3);
      EXPECT_FALSE(throughput.of_peak);
      for (const char* name : {"implementation", "isa", "threads"}) EXPECT_FALSE(outcome.choices.at(name).empty());
      EXPECT_GT(whole_number<double>(outcome.labels.at("tried_" + outcome.labels.at("form"))).value_or(0), 0);
      EXPECT_EQ(outcome.protocol.details, (std::map<std::string, std::string>{{"isa", outcome.choices.at("isa")}}));
      EXPECT_NO_THROW(outcome.protocol.to_json());
      EXPECT_TRUE(outcome.protocol.data.starts_with(dtype == "int8" ? "uniform" : "normal"));
    }
}

TEST(GemmCase, AFlippedBitIsFoundAndNamed) {
  for (const std::string dtype : {"f64", "f32", "bf16", "int8"}) {
    const Outcome outcome = gemm({{"dtype", dtype}}, {.faults = {Fault::bit_flip}, .peaks = {}});
    if (outcome.skipped) continue;
    EXPECT_FALSE(outcome.check("wrong_elements").passed) << dtype;
    EXPECT_EQ(outcome.check("wrong_elements").value, 1) << dtype;
    EXPECT_EQ(outcome.check("wrong_elements").detail.size(), 1u) << dtype;
  }
}

TEST(GemmCase, UnsupportedTypesAreSkippedWithAReason) {
  for (const std::string dtype : {"tf32", "fp16", "fp8_e4m3", "fp8_e5m2"}) {
    const Outcome outcome = gemm({{"dtype", dtype}});
    ASSERT_TRUE(outcome.skipped) << dtype;
    EXPECT_NE(outcome.skipped->find(dtype.substr(0, dtype.find('_'))), std::string::npos) << *outcome.skipped;
  }
}

TEST(GemmCase, FractionOfAPeakOfTheSameRun) {
  const Outcome first = gemm({{"dtype", "f32"s}});
  const int threads = std::stoi(first.choices.at("threads"));
  const MeasuredPeak peak{"peak/x", "f32", "avx512", true, 1, threads, 1e12};
  const Outcome outcome = gemm({{"dtype", "f32"s}}, {.faults = {}, .peaks = {peak}});
  EXPECT_DOUBLE_EQ(*outcome.metrics.front().of_peak, *outcome.metrics.front().value / 1e12);
  EXPECT_NE(outcome.labels.at("peak").find("peak/x"), std::string::npos);
  EXPECT_FALSE(gemm({{"dtype", "f64"s}}, {.faults = {}, .peaks = {peak}}).metrics.front().of_peak);
}

TEST(GemmCase, ZerosAreLabelledAndOtherDataRefused) {
  const Outcome outcome = gemm({{"dtype", "f32"s}}, {.faults = {}, .peaks = {}, .data = "zeros"});
  EXPECT_EQ(outcome.protocol.data, "zeros");
  EXPECT_TRUE(outcome.passed());
  EXPECT_THROW(gemm({{"dtype", "f32"s}}, {.faults = {}, .peaks = {}, .data = "ones"}), UsageError);
}

TEST(GemmCase, HotKeepsOneSetAndColdRotates) {
  EXPECT_EQ(gemm({{"dtype", "f32"s}, {"cache", "hot"s}}).protocol.cache, Protocol::Cache::hot);
  const Outcome cold = gemm({{"dtype", "f32"s}, {"cache", "cold"s}});
  EXPECT_EQ(cold.protocol.cache, Protocol::Cache::cold);
  EXPECT_TRUE(cold.passed());
}

TEST(GemmCase, EstimateIsArithmetic) {
  const Family family = gemm_family();
  Params params;
  for (const ParamSpec& spec : family.params) params.set(spec.name, spec.defaults.front());
  const Estimate e = family.estimate(params, {});
  EXPECT_EQ(e.flops, 2.0 * 2048 * 2048 * 2048);
  EXPECT_EQ(e.bytes, 3.0 * 4 * 2048 * 2048);
  EXPECT_GE(e.memory_bytes, e.bytes);
}

TEST(PeakCase, EveryDtypeIsMeasuredAndPasses) {
  for (const std::string dtype : {"f64", "f32", "bf16", "int8"}) {
    const Outcome outcome = run(peak_family(), {{"dtype", dtype}, {"threads", "all"s}});
    if (outcome.skipped) {
      std::cout << "[ skipped ] " << dtype << ": " << *outcome.skipped << "\n";
      continue;
    }
    EXPECT_TRUE(outcome.passed()) << dtype;
    EXPECT_GT(*outcome.metrics.front().value, 0);
    EXPECT_FALSE(outcome.choices.at("isa").empty());
    EXPECT_NE(outcome.choices.at("isa"), "auto");
    EXPECT_NO_THROW(outcome.protocol.to_json());
  }
}

TEST(PeakCase, AFlippedBitIsFound) {
  const Outcome outcome =
      run(peak_family(), {{"dtype", "f32"s}, {"threads", "core"s}}, {.faults = {Fault::bit_flip}, .peaks = {}});
  if (outcome.skipped) GTEST_SKIP() << *outcome.skipped;
  EXPECT_EQ(outcome.check("wrong_elements").value, 1);
}

TEST(PeakCase, UnsupportedInstructionSetsAreSkipped) {
  EXPECT_TRUE(run(peak_family(), {{"dtype", "f32"s}, {"isa", "amx"s}}).skipped);
}

TEST(PeakCase, MoreThreadsThanCpusIsAConflict) {
  const Family family = peak_family();
  Params params;
  for (const ParamSpec& spec : family.params) params.set(spec.name, spec.defaults.front());
  EXPECT_FALSE(family.conflict(params, {.ranks = 1, .nodes = 1, .cpus = 2}));
  params.set("threads", std::int64_t{3});
  EXPECT_TRUE(family.conflict(params, {.ranks = 1, .nodes = 1, .cpus = 2}));
}

}  // namespace
}  // namespace assay
