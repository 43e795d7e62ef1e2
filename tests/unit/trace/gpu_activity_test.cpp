// GPU activities are attributed to the span that launched them and to enclosing ones.
#include "harness/trace/gpu_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace assay::trace {
namespace {

constexpr std::int64_t ms = 1'000'000;

Entry span(const char* name, Category category, std::int64_t start, std::int64_t end, int thread = 0) {
  return {name, category, 0, start * ms, (end - start) * ms, thread};
}

GpuActivity kernel(std::int64_t launched, std::int64_t start, std::int64_t end, bool communication = false) {
  GpuActivity activity;
  activity.name = "k";
  activity.launched_ns = launched * ms;
  activity.start_ns = start * ms;
  activity.duration_ns = (end - start) * ms;
  activity.stream = communication ? 9 : 7;
  activity.communication = communication;
  return activity;
}

std::map<std::string, double> seconds(const std::vector<Entry>& spans, const std::vector<GpuActivity>& activities) {
  const auto list = gpu_time_by_span(spans, activities);
  return {list.begin(), list.end()};
}

// Two steps of 100 ms: forward launches at 12 (in a layer) and 20, backward at 50.
std::vector<Entry> two_steps() {
  std::vector<Entry> spans;
  for (const std::int64_t at : {0, 100}) {
    spans.push_back(span("step", Category::sample, at + 10, at + 90));
    spans.push_back(span("forward", Category::sample, at + 10, at + 40));
    spans.push_back(span("block.0", Category::layer, at + 11, at + 15));
    spans.push_back(span("backward", Category::sample, at + 40, at + 80));
    spans.push_back(span("decode", Category::data, at + 5, at + 95, 1));
  }
  return spans;
}

TEST(GpuTime, GoesToTheSpanThatLaunchedIt) {
  // The GPU lags behind the host: forward's second kernel runs while backward is being enqueued.
  const auto by_name = seconds(two_steps(), {kernel(12, 20, 30), kernel(20, 45, 65), kernel(50, 65, 75),
                                             kernel(112, 120, 130), kernel(120, 145, 165), kernel(150, 170, 190)});
  EXPECT_NEAR(by_name.at("gpu:forward"), 30e-3, 1e-9);       // 10 + 20 per step
  EXPECT_NEAR(by_name.at("gpu_idle:forward"), 15e-3, 1e-9);  // from 30 to 45
  EXPECT_NEAR(by_name.at("gpu:backward"), 15e-3, 1e-9);      // (10 + 20) / 2
  EXPECT_NEAR(by_name.at("gpu:step"), 45e-3, 1e-9);
  EXPECT_NEAR(by_name.at("gpu_idle:step"), 17.5e-3, 1e-9);  // 15, and 15 + 5
  EXPECT_FALSE(by_name.contains("gpu:block.0"));            // a layer: only in the timeline
  EXPECT_FALSE(by_name.contains("gpu_overlap:step"));
}

TEST(GpuTime, OverlapOfCommunicationIsCountedOnce) {
  // Compute from 50 to 70 and 60 to 80 on two streams, communication from 55 to 75 and 78 to 90.
  const auto by_name = seconds(
      two_steps(), {kernel(50, 50, 70), kernel(51, 60, 80), kernel(52, 55, 75, true), kernel(53, 78, 90, true)});
  EXPECT_NEAR(by_name.at("gpu_overlap:backward"), (20 + 2) * 0.5e-3, 1e-9);  // of two backward passes
  EXPECT_NEAR(by_name.at("gpu:backward"), 40 * 0.5e-3, 1e-9);
  EXPECT_NEAR(by_name.at("gpu_idle:backward"), 0, 1e-9);
}

TEST(GpuTime, LaunchesOutsideAllSpansBelongToNone) {
  EXPECT_THAT(gpu_time_by_span(two_steps(), {kernel(95, 96, 97), kernel(2, 3, 4), kernel(0, 50, 60)}),
              testing::IsEmpty());
  EXPECT_THAT(gpu_time_by_span({}, {kernel(5, 6, 7)}), testing::IsEmpty());
  EXPECT_THAT(gpu_time_by_span(two_steps(), {}), testing::IsEmpty());
}

TEST(GpuEntries, HaveTheirOwnTracksAndNameTheInnermostSpan) {
  const auto entries = gpu_entries(two_steps(), {kernel(12, 20, 30), kernel(200, 205, 210)});
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "k [block.0]");
  EXPECT_EQ(entries[0].category, Category::gpu);
  EXPECT_EQ(entries[0].thread, gpu_track(7, 0));
  EXPECT_EQ(entries[0].start_ns, 20 * ms);
  EXPECT_EQ(entries[1].name, "k");
}

// Perfetto nests a track's slices, so slices that overlap without nesting would be displayed wrongly.
TEST(GpuEntries, ThatOverlapInAStreamAreOnSeparateTracks) {
  const auto entries = gpu_entries({}, {kernel(0, 25, 30), kernel(0, 10, 20), kernel(0, 15, 30), kernel(0, 20, 22)});
  std::vector<int> tracks;
  for (const Entry& entry : entries) tracks.push_back(entry.thread);
  EXPECT_THAT(tracks, testing::ElementsAre(gpu_track(7, 0), gpu_track(7, 1), gpu_track(7, 0), gpu_track(7, 0)));
}

TEST(GpuEntries, AreTheFirstIfThereAreTooMany) {
  const auto entries = gpu_entries({}, {kernel(0, 25, 30), kernel(0, 10, 20), kernel(0, 15, 30)}, 2);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].start_ns, 10 * ms);
  EXPECT_EQ(entries[1].start_ns, 15 * ms);
}

}  // namespace
}  // namespace assay::trace
