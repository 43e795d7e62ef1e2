#include "harness/device/delay.h"

#include "harness/core/clock.h"
#include "harness/core/module.h"

namespace assay {

void delay(Device& device, Stream& stream, double seconds) {
  if (device.kind() != DeviceKind::cpu) {
    static const Module module = Module::load("cuda");
    static const auto enqueue = module.function<CudaDelay*>(cuda_delay_name);
    return enqueue(stream, seconds);
  }
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
  }
}

}  // namespace assay
