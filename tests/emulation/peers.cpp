// Stand-ins of the CUDA runtime's access of one GPU to another's memory.
#include "tests/emulation/runtime.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

namespace assay::emulation {

namespace {

std::mutex mutex;
std::set<std::pair<int, int>>& enabled() {  // the GPU that has access, and the other
  static auto& all = *new std::set<std::pair<int, int>>;
  return all;
}

bool exists(int number) { return number >= 0 && number < visible_devices(); }

bool can_access(int gpu, int other) {
  const auto only = scripted("peers");
  return gpu != other && (!only || *only == fmt::format("{}>{}", gpu, other));
}

}  // namespace

bool has_access(int gpu, int other) {
  const std::lock_guard lock(mutex);
  return enabled().contains({gpu, other});
}

}  // namespace assay::emulation

using namespace assay::emulation;

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can, int gpu, int other) {
  if (!exists(gpu) || !exists(other)) return report(cudaErrorInvalidDevice);
  *can = can_access(gpu, other);
  return report(sticky_error());
}
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned) {
  if (!exists(other) || other == current_device()) return report(cudaErrorInvalidDevice);
  if (!can_access(current_device(), other)) return report(cudaErrorPeerAccessUnsupported);
  const std::lock_guard lock(mutex);
  return report(enabled().insert({current_device(), other}).second ? sticky_error()
                                                                   : cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDeviceDisablePeerAccess(int other) {
  if (!exists(other)) return report(cudaErrorInvalidDevice);
  const std::lock_guard lock(mutex);
  return report(enabled().erase({current_device(), other}) ? sticky_error() : cudaErrorPeerAccessNotEnabled);
}

}  // extern "C"
