// Loads the backend module for a device's kind, once per process.
#include "workloads/ops/backend.h"

#include "harness/core/module.h"

#include <map>
#include <mutex>

namespace assay::ops {

std::shared_ptr<Backend> backend_for(Device& device) {
  static std::mutex mutex;
  static std::map<DeviceKind, std::shared_ptr<Backend>> loaded;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Backend>& backend = loaded[device.kind()];
  if (!backend) {
    const std::string name(assay::name_of(device.kind()));
    const Module module = Module::load(name);
    const auto make = module.function<Backend* (*)(Device*)>(("assay_make_" + name + "_backend").c_str());
    backend.reset(make(&device));
  }
  return backend;
}

}  // namespace assay::ops
