// Directions that are guessed from names, as SuperBench and counters of Google Benchmark have them.
#include "harness/figures/direction.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Direction, TheMetricIsWhatFollowsTheLastSlash) {
  EXPECT_EQ(metric_part("bert/steptime_train:0"), "steptime_train");
  EXPECT_EQ(metric_part("a/b/c"), "c");
  EXPECT_EQ(metric_part("bandwidth:ab"), "bandwidth:ab");
  EXPECT_EQ(metric_part("a/"), "a/");
}

TEST(Direction, CostsAreLower) {
  for (const char* name :
       {"models/pytorch-bert/steptime_train_float32", "kernel-launch/wall_overhead:0", "x/event_time:3", "x/mul_cost:0",
        "monitor/gpu_temperature:0", "monitor/gpu_power", "train/valLoss", "fio/rand_read_lat_ns_95", "p99_us",
        "ns_per_op", "meanLatencyMs", "walltime", "HTTPLatency", "retries", "error_rate", "time_per_second"})
    EXPECT_EQ(guessed_better(name), Better::lower) << name;
}

TEST(Direction, RatesAreHigherWhateverElseIsThere) {
  for (const char* name :
       {"nccl-lat:default/allreduce_8_busbw:0", "cpu-memory-bw-latency/mem_max_bandwidth_all_reads_bw:0",
        "time/throughput_train", "latency/h2d_bw", "x/loss_bandwidth", "gemm/fp16_TFLOPS", "images_per_second",
        "samples_per_sec", "error-bench/iops", "GFlops"})
    EXPECT_EQ(guessed_better(name), Better::higher) << name;
}

// The words must be whole ones: "flatten" has "lat" in it, "commission" "miss".
TEST(Direction, OtherNamesAreHigher) {
  for (const char* name : {"accuracy", "flatten", "commission", "gemm-flops/FP16:0", "costume", "powerful",
                           "latency-bench/x", "status", "ms_office"})
    EXPECT_EQ(guessed_better(name), Better::higher) << name;
}

}  // namespace
}  // namespace assay
