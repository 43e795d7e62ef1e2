// Figures in lines of the forms that training programs print; the lines and their numbers are made up.
#include "harness/figures/printed.h"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

PrintedFigure figure_in(const std::string& text, const std::string& name) {
  return named_figure({text}, name, Better::higher, "output");
}
double value_in(const std::string& text, const std::string& name) { return figure_in(text, name).value; }

TEST(TrainingLines, Torchtitan) {
  const std::string text =
      "[rank0]:[titan] 2026-02-03 04:05:06,789 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: 11.7500  "
      "\x1b[33mmemory:  8.50GiB(10.75%)  \x1b[34mtps: 11,250  \x1b[36mtflops: 95.50  \x1b[35mmfu: 30.50%\x1b[39m\n"
      "[rank0]:[titan] 2026-02-03 04:05:16,789 - root - INFO - \x1b[31mstep:  2  \x1b[32mloss: 10.2500  "
      "\x1b[33mmemory:  8.50GiB(10.75%)  \x1b[34mtps: 13,750  \x1b[36mtflops: 99.50  \x1b[35mmfu: 31.50%\x1b[39m\n";
  EXPECT_EQ(value_in(text, "tps"), 12500);
  EXPECT_EQ(value_in(text, "loss"), 11);
  EXPECT_EQ(value_in(text, "tflops"), 97.5);
  EXPECT_NEAR(value_in(text, "mfu"), 0.31, 1e-12);
}

TEST(TrainingLines, HuggingFaceTrainer) {
  const std::string text =
      "{'loss': 3.25, 'grad_norm': 1.5, 'learning_rate': 4.5e-05, 'epoch': 0.5}\n"
      "{'loss': 2.75, 'grad_norm': 1.25, 'learning_rate': 4e-05, 'epoch': 1.0}\n"
      "{'train_runtime': 62.5, 'train_samples_per_second': 1024.5, 'train_steps_per_second': 8.25, 'epoch': 1.0}\n";
  EXPECT_EQ(value_in(text, "loss"), 3);
  EXPECT_EQ(value_in(text, "learning_rate"), 4.25e-5);
  EXPECT_EQ(value_in(text, "train_samples_per_second"), 1024.5);
}

TEST(TrainingLines, Megatron) {
  const std::string text =
      " [2026-02-03 04:05:06] iteration       10/     100 | consumed samples:          640 | elapsed time per "
      "iteration "
      "(ms): 2150.5 | throughput per GPU (TFLOP/s/GPU): 310.5 | learning rate: 1.5E-05 | global batch size:    64 | lm "
      "loss: 9.5E+00 | loss scale: 1.0 | number of skipped iterations:   0 |\n"
      " [2026-02-03 04:05:28] iteration       20/     100 | consumed samples:         1280 | elapsed time per "
      "iteration "
      "(ms): 2049.5 | throughput per GPU (TFLOP/s/GPU): 320.5 | learning rate: 3.0E-05 | global batch size:    64 | lm "
      "loss: 8.5E+00 | loss scale: 1.0 | number of skipped iterations:   0 |\n";
  EXPECT_EQ(value_in(text, "throughput per GPU (TFLOP/s/GPU)"), 315.5);
  EXPECT_EQ(value_in(text, "elapsed time per iteration (ms)"), 2100);
  EXPECT_EQ(value_in(text, "lm loss"), 9);
  EXPECT_EQ(value_in(text, "global batch size"), 64);
}

TEST(TrainingLines, DeepSpeed) {
  const std::string text =
      "[2026-02-03 04:05:06,789] [INFO] [timer.py:260:stop] epoch=0/micro_step=10/global_step=10, "
      "RunningAvgSamplesPerSec=40.5, CurrSamplesPerSec=41.5, MemAllocated=2.5GB, MaxMemAllocated=7.25GB\n"
      "[2026-02-03 04:05:09,789] [INFO] [timer.py:260:stop] epoch=0/micro_step=20/global_step=20, "
      "RunningAvgSamplesPerSec=42.5, CurrSamplesPerSec=44.5, MemAllocated=2.5GB, MaxMemAllocated=7.25GB\n";
  EXPECT_EQ(value_in(text, "CurrSamplesPerSec"), 43);
  EXPECT_EQ(value_in(text, "MaxMemAllocated"), 7.25e9);
  EXPECT_EQ(figure_in(text, "MaxMemAllocated").unit, "B");
}

TEST(TrainingLines, Lightning) {
  const std::string text =
      "\rEpoch 0:  50%|\u2588\u2588\u2588\u2588\u2588     | 50/100 [00:05<00:05,  9.50it/s, v_num=3, train_loss=0.750]"
      "\rEpoch 0: 100%|\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588| 100/100 [00:10<00:00,  9.75it/s, "
      "v_num=3, train_loss=0.250]\n";
  EXPECT_EQ(value_in(text, "train_loss"), 0.25);
  EXPECT_EQ(value_in(text, "it/s"), 9.75);
}

TEST(TrainingLines, Torchtune) {
  const std::string text =
      "Step 1 | loss:1.75 lr:2e-05 tokens_per_second_per_gpu:2048.5 peak_memory_active:14.5\n"
      "Step 2 | loss:1.25 lr:4e-05 tokens_per_second_per_gpu:2050.5 peak_memory_active:14.5\n";
  EXPECT_EQ(value_in(text, "tokens_per_second_per_gpu"), 2049.5);
  EXPECT_EQ(value_in(text, "loss"), 1.5);
  const std::string bar = "\r1|10|Loss: 2.125: 10%|\u2588   | 10/100 [00:20<03:00,  2.00s/it]";
  EXPECT_EQ(value_in(bar, "Loss"), 2.125);
  EXPECT_EQ(value_in(bar, "s/it"), 2);
}

TEST(TrainingLines, NanoGpt) {
  const std::string text =
      "step 0: train loss 4.5000, val loss 4.7500\n"
      "iter 0: loss 4.5000, time 850.00ms, mfu -100.00%\niter 10: loss 3.5000, time 250.00ms, mfu 17.00%\n"
      "iter 20: loss 3.0000, time 260.00ms, mfu 18.00%\n";
  EXPECT_EQ(value_in(text, "val loss"), 4.75);
  EXPECT_NEAR(named_figure({text}, "time", {}, "output").value, 0.26, 1e-12);
  EXPECT_NEAR(value_in(text, "mfu"), 0.17, 1e-12);
}

TEST(TrainingLines, Tqdm) {
  const std::string text =
      "\rtrain:  10%|\u2588         | 100/1000 [00:08<01:12, 12.50it/s, loss=2.5]"
      "\rtrain: 100%|\u2588\u2588\u2588\u2588| 1000/1000 [01:20<00:00, 12.75it/s, loss=1.5]\n";
  EXPECT_EQ(value_in(text, "it/s"), 12.75);
  EXPECT_EQ(value_in(text, "loss"), 1.5);
}

}  // namespace
}  // namespace assay
