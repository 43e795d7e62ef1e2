#include "workloads/ops/trial_timer.h"

#include "tests/unit/sampling/fake_device.h"

#include <gmock/gmock.h>

#include <vector>

namespace assay::ops {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// A launch takes the host 5 us, the work behind a gate the device 1 us.
class TrialTimerTest : public testing::Test {
 protected:
  test::FakeDevice device;
  const std::unique_ptr<Stream> stream = device.make_stream();
  TrialTimer timer{device, *stream};

  double seconds(bool first = false) {
    return timer.seconds([&] { device.now += device.gate_closed ? 1e-6 : 5e-6; }, 10, first);
  }
  std::vector<double> comparison() {
    return timer.comparison([&] { return std::vector{seconds(true), seconds(), seconds()}; });
  }
};

TEST_F(TrialTimerTest, AllButTheFirstRunAreBehindAGate) {
  EXPECT_THAT(comparison(), ElementsAre(DoubleNear(5e-6, 1e-9), DoubleNear(1e-6, 1e-9), DoubleNear(1e-6, 1e-9)));
  EXPECT_EQ(device.gates, 2);
}

TEST_F(TrialTimerTest, IfAGateOpensByItselfAllAreTimedAgainWithoutOne) {
  device.timeouts = 1;
  EXPECT_THAT(comparison(), ElementsAre(DoubleNear(5e-6, 1e-9), DoubleNear(5e-6, 1e-9), DoubleNear(5e-6, 1e-9)));
  EXPECT_EQ(device.gates, 1);
  EXPECT_THAT(comparison(), ElementsAre(DoubleNear(5e-6, 1e-9), DoubleNear(5e-6, 1e-9), DoubleNear(5e-6, 1e-9)));
  EXPECT_EQ(device.gates, 1);
}

}  // namespace
}  // namespace assay::ops
