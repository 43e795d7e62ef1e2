#include "harness/sampling/disturbance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Disturbance> quiet(std::size_t count) {
  Disturbance sample;
  sample.wall_seconds = 1e-3;
  sample.off_cpu_seconds = 1e-6;
  return std::vector<Disturbance>(count, sample);
}

TEST(Disturbance, QuietSamplesAreNotMarked) {
  EXPECT_THAT(disturbed_samples(quiet(20)), IsEmpty());
  EXPECT_THAT(disturbed_samples({}), IsEmpty());
}

TEST(Disturbance, EachKindMarksItsSample) {
  std::vector<Disturbance> samples = quiet(20);
  samples[2].off_cpu_seconds = 1e-4;
  samples[3].off_cpu_seconds = 2e-5;  // within 5 % of a sample: noise
  samples[5].involuntary = 1;
  samples[7].major_faults = 1;
  samples[11].migrated = true;
  samples[13].stolen = true;
  EXPECT_THAT(disturbed_samples(samples), ElementsAre(2, 5, 7, 11, 13));
}

TEST(Disturbance, WaitingInEverySampleIsNotADisturbance) {
  std::vector<Disturbance> samples = quiet(20);
  for (Disturbance& sample : samples) {
    sample.off_cpu_seconds = 8e-4;  // a hand-off that sleeps
    sample.involuntary = 3;
  }
  samples[4].off_cpu_seconds = 9.5e-4;
  samples[6].involuntary = 4;
  EXPECT_THAT(disturbed_samples(samples), ElementsAre(4, 6));
}

TEST(DisturbanceWatch, MeasuresTimeOffTheCpu) {
  DisturbanceWatch watch;
  for (int i = 0; i < 9; ++i) {
    watch.before();
    if (i == 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    watch.after();
  }
  ASSERT_EQ(watch.samples().size(), 9u);
  EXPECT_GE(watch.samples()[4].off_cpu_seconds, 0.015);
  EXPECT_THAT(disturbed_samples(watch.samples()), Contains(4));
}

}  // namespace
}  // namespace assay
