// Dynamic loss scaling: halved by overflows, doubled after steps without one.
#include "workloads/nn/loss_scaler.h"

#include <gtest/gtest.h>

namespace assay::nn {
namespace {

TEST(LossScaler, OverflowHalvesAndRestartsTheCount) {
  LossScaler scaler(true);
  EXPECT_EQ(scaler.scale(), 65536.0f);
  for (int i = 0; i < LossScaler::growth_interval - 1; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0f);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32768.0f);
  for (int i = 0; i < LossScaler::growth_interval - 1; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 32768.0f);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536.0f);
}

TEST(LossScaler, StaysWithinBounds) {
  LossScaler scaler(true);
  for (int i = 0; i < 200; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), LossScaler::smallest);
  scaler.state().scale = 2e37f;
  for (int i = 0; i < LossScaler::growth_interval; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 2e37f);
}

TEST(LossScaler, OffMeansOne) {
  LossScaler scaler(false);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1.0f);
}

}  // namespace
}  // namespace assay::nn
