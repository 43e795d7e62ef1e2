// Access of one emulated GPU to another's memory: granted by each pair in each direction, and refused twice.
#include "tests/emulation/runtime.h"

#include <cuda_runtime_api.h>

#include <mutex>
#include <set>
#include <utility>

namespace {

using assay::emulation::report;

std::mutex mutex;
std::set<std::pair<int, int>>& granted() {
  static std::set<std::pair<int, int>> pairs;
  return pairs;
}

cudaError_t check_peer(int device, int peer) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  if (device < 0 || device >= count || peer < 0 || peer >= count) return cudaErrorInvalidDevice;
  return device == peer ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const cudaError_t error = check_peer(device, peer);
  *can = error == cudaSuccess;
  return error == cudaErrorInvalidValue ? cudaSuccess : report(error);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return report(error);
  if (const cudaError_t error = check_peer(device, peer); error != cudaSuccess) return report(error);
  if (flags != 0) return report(cudaErrorInvalidValue);
  const std::lock_guard lock(mutex);
  return report(granted().insert({device, peer}).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return report(error);
  const std::lock_guard lock(mutex);
  return report(granted().erase({device, peer}) ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

}  // extern "C"
