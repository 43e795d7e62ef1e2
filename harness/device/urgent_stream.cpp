#include "harness/device/urgent_stream.h"

#include "harness/core/module.h"

namespace assay {

std::unique_ptr<Stream> make_urgent_stream(Device& device) {
  if (device.kind() == DeviceKind::cpu) return device.make_stream();
  static const Module module = Module::load("cuda");
  static const auto make = module.function<CudaUrgentStream*>(cuda_urgent_stream_name);
  return std::unique_ptr<Stream>(make());
}

}  // namespace assay
