#include "harness/comm/nccl/window.h"

#include "harness/comm/nccl/check.h"
#include "harness/core/error.h"

#include <dlfcn.h>

namespace assay::nccl {

namespace {

constexpr int first_version = 22700;
constexpr int symmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC

}  // namespace

void* find_symbol(const char* name) {
  Dl_info place{};
  if (!dladdr(reinterpret_cast<void*>(&ncclGetVersion), &place) || !place.dli_fname) return nullptr;
  void* library = dlopen(place.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

std::optional<Windows> find_windows() {
  int version = 0;
  ASSAY_NCCL(ncclGetVersion(&version));
  const Windows found{reinterpret_cast<decltype(Windows::add)>(find_symbol("ncclCommWindowRegister")),
                      reinterpret_cast<decltype(Windows::remove)>(find_symbol("ncclCommWindowDeregister"))};
  return version >= first_version && found.add && found.remove ? std::optional(found) : std::nullopt;
}

Buffer allocate_window(ncclComm_t comm, std::size_t bytes) {
  const auto windows = find_windows();
  if (!windows) throw Error("this NCCL has no windows");
  void* data = nullptr;
  void* window = nullptr;
  ASSAY_NCCL(ncclMemAlloc(&data, bytes));
  const ncclResult_t added = windows->add(comm, data, bytes, &window, symmetric);
  if (added == ncclSuccess && window)
    return Buffer(data, bytes, [comm, window, remove = windows->remove](void* held, std::size_t) {
      remove(comm, window);
      ncclMemFree(held);
    });
  ncclMemFree(data);
  if (added != ncclSuccess) fail(added, "ncclCommWindowRegister", __FILE__, __LINE__);
  throw Error("ncclCommWindowRegister makes no window: these GPUs cannot all reach each other's memory");
}

}  // namespace assay::nccl
