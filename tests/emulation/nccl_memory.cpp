// Stand-ins of NCCL's memory: allocated, registered by one rank, or by all as a symmetric window, with NCCL's rules.
#include "harness/core/error.h"
#include "tests/emulation/nccl_comm.h"
#include "tests/emulation/runtime.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>

namespace assay::emulation {

namespace {

constexpr std::size_t page = 4096;  // the alignment that windows require

std::mutex mutex;
std::multiset<const void*>& registered() {
  static auto& all = *new std::multiset<const void*>;
  return all;
}
void forget(const void* data) {
  const std::lock_guard lock(mutex);
  if (const auto found = registered().find(data); found != registered().end()) registered().erase(found);
}

}  // namespace

int nccl_version() {
  static const int code = [] {
    const auto text = scripted("nccl");
    if (!text) return NCCL_VERSION_CODE;
    int major = 0, minor = 0, patch = 0;
    ASSAY_CHECK(std::sscanf(text->c_str(), "%d.%d.%d", &major, &minor, &patch) == 3, "ASSAY_EMULATION: nccl={}", *text);
    return 10000 * major + 100 * minor + patch;
  }();
  return code;
}

bool in_window(ncclComm_t comm, const void* address) {
  const char* at = static_cast<const char*>(address);
  const auto next = comm->windows.upper_bound(at);
  if (next == comm->windows.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  return at < start + bytes;
}

}  // namespace assay::emulation

using namespace assay::emulation;

extern "C" {

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  return cudaMalloc(data, (bytes + page - 1) / page * page) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* data) {
  {
    const std::lock_guard lock(mutex);
    if (registered().contains(data)) return warn(ncclInvalidUsage, 0, "memory is freed that is still registered");
  }
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t, void* data, size_t, void** handle) {
  *handle = data;
  const std::lock_guard lock(mutex);
  registered().insert(data);
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t, void* handle) {
  forget(handle);
  return ncclSuccess;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, size_t bytes, ncclWindow_t* window, int flags) {
  *window = nullptr;
  if (reinterpret_cast<std::uintptr_t>(data) % page != 0 || flags != NCCL_WIN_COLL_SYMMETRIC)
    return warn(ncclInvalidArgument, comm->device, "a window is not aligned, or not symmetric");
  bool equal = true;
  if (!comm->world->exchange(3, &bytes, sizeof bytes, [&](int, std::size_t, const char* piece, std::size_t) {
        equal = equal && std::memcmp(piece, &bytes, sizeof bytes) == 0;
      }))
    return result_of(comm);
  if (!equal) return warn(ncclInvalidUsage, comm->device, "the ranks' windows differ in size");
  if (scripted("nccl_windows") == "refused") return ncclSuccess;
  comm->windows[static_cast<const char*>(data)] = bytes;
  *window = static_cast<ncclWindow_t>(data);
  const std::lock_guard lock(mutex);
  registered().insert(data);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  if (comm->windows.erase(reinterpret_cast<const char*>(window)) == 0)
    return warn(ncclInvalidUsage, comm->device, "no such window");
  forget(window);
  return ncclSuccess;
}
#endif

}  // extern "C"
