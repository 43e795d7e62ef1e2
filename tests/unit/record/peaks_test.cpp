#include "harness/record/peaks.h"

#include "harness/core/error.h"
#include "harness/json/members.h"
#include "harness/record/record.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Record peak_record() {
  Record record;
  record.family = "peak";
  record.key = "peak/dtype=f32/isa=auto/threads=all";
  record.params = {{"dtype", "f32"}, {"isa", "auto"}, {"threads", "all"}};
  record.choices = {{"isa", "avx512"}, {"threads", "2"}};
  Metric metric;
  metric.name = "throughput";
  metric.value = 4e11;
  record.metrics = {metric};
  return record;
}

TEST(MeasuredPeak, ComesFromAPassingRecord) {
  const auto peak = measured_peak(peak_record());
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->dtype, "f32");
  EXPECT_EQ(peak->isa, "avx512");
  EXPECT_TRUE(peak->fastest);
  EXPECT_EQ(peak->threads, 2);
  EXPECT_EQ(peak->rate, 4e11);

  Record failed = peak_record();
  failed.status = Status::failed;
  EXPECT_FALSE(measured_peak(failed));
  Record other = peak_record();
  other.family = "gemm";
  EXPECT_FALSE(measured_peak(other));
  Record bare = peak_record();
  bare.choices.clear();
  EXPECT_FALSE(measured_peak(bare));
  Record unknown = peak_record();
  unknown.metrics.front().value.reset();
  EXPECT_FALSE(measured_peak(unknown));
}

TEST(MeasuredPeak, GoesThroughJson) {
  const MeasuredPeak peak = *measured_peak(peak_record());
  const MeasuredPeak back = read_value<MeasuredPeak>(json_of(peak));
  EXPECT_EQ(json_of(back), json_of(peak));
  EXPECT_THROW((void)read_value<MeasuredPeak>(Json{{"key", "x"}}), Error);
}

TEST(FindPeak, FindsTheRoofForTheSameThreads) {
  const std::vector<MeasuredPeak> peaks = {{"auto", "f32", "avx512", true, 1, 2, 400.0},
                                           {"sse", "f32", "sse", false, 1, 2, 100.0},
                                           {"core", "f32", "avx512", true, 1, 1, 200.0}};
  EXPECT_EQ(find_peak(peaks, "f32", "avx512", 1, 2)->key, "auto");
  EXPECT_EQ(find_peak(peaks, "f32", "sse", 1, 2)->key, "auto");
  EXPECT_EQ(find_peak(peaks, "f32", "avx512", 1, 1)->key, "core");
  EXPECT_EQ(find_peak(peaks, "f64", "avx512", 1, 2), nullptr);
  EXPECT_EQ(find_peak(peaks, "f32", "avx512", 2, 2), nullptr);
  const std::vector<MeasuredPeak> narrow(peaks.begin() + 1, peaks.begin() + 2);
  EXPECT_EQ(find_peak(narrow, "f32", "avx512", 1, 2), nullptr);
  EXPECT_EQ(find_peak(narrow, "f32", "sse", 1, 2)->key, "sse");
}

}  // namespace
}  // namespace assay
