// CUPTI's records become activities; with a stand-in of libcupti that ctest puts on the library path.
#include "harness/trace/gpu_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <dlfcn.h>

extern "C" assay::trace::GpuRecorder* assay_make_gpu_recorder(std::int64_t (*now)(), std::string* why_not);

namespace assay::trace {
namespace {

std::int64_t at_1000() { return 1000; }

class Cupti : public testing::Test {
 protected:
  void SetUp() override {
    void* const library = dlopen(ASSAY_CUPTI_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    enabled_ = reinterpret_cast<std::size_t (*)()>(dlsym(library, "assay_stand_in_enabled"));
    ASSERT_TRUE(enabled_);
  }
  std::size_t (*enabled_)() = nullptr;
};

TEST_F(Cupti, RecordsNameTimeAndLaunch) {
  std::string why_not;
  const std::unique_ptr<GpuRecorder> recorder(assay_make_gpu_recorder(at_1000, &why_not));
  ASSERT_TRUE(recorder) << why_not;
  EXPECT_EQ(enabled_(), 5u);
  const auto activities = recorder->drain();
  std::vector<std::string> names;
  for (const GpuActivity& activity : activities) names.push_back(activity.name);
  EXPECT_THAT(names, testing::ElementsAre("assay::sums(float const*)", "memcpy HtoD", "memset",
                                          "ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
  EXPECT_EQ(activities[0].start_ns, 1010);
  EXPECT_EQ(activities[0].duration_ns, 20);
  EXPECT_EQ(activities[0].launched_ns, 1000);
  EXPECT_EQ(activities[0].stream, 7u);
  EXPECT_EQ(activities[1].launched_ns, 0);  // its call is unknown
  EXPECT_FALSE(activities[0].communication);
  EXPECT_TRUE(activities[3].communication);
}

TEST_F(Cupti, WorkWithoutATimeIsCountedAsLost) {
  std::string why_not;
  const std::unique_ptr<GpuRecorder> recorder(assay_make_gpu_recorder(at_1000, &why_not));
  ASSERT_TRUE(recorder) << why_not;
  recorder->drain();
  EXPECT_EQ(recorder->dropped(), 3 + 2);  // by CUPTI itself; one without a time, and one that ends before it starts
  EXPECT_EQ(recorder->dropped(), 0);
}

TEST_F(Cupti, DisablesEverythingIfAnotherProfilerIsActive) {
  setenv("ASSAY_CUPTI_REFUSES", "1", 1);
  std::string why_not;
  const std::unique_ptr<GpuRecorder> recorder(assay_make_gpu_recorder(at_1000, &why_not));
  unsetenv("ASSAY_CUPTI_REFUSES");
  EXPECT_FALSE(recorder);
  EXPECT_EQ(why_not, "cuptiActivityEnable failed: CUPTI_ERROR_OF_THE_STAND_IN");
  EXPECT_EQ(enabled_(), 0u);
}

}  // namespace
}  // namespace assay::trace
