// A libcuda.so.1 that knows no device. cuDNN's engines that compile at run time load it for the addresses of its
// functions, which planning never calls.
#include <dlfcn.h>

#include <cstring>

namespace {

constexpr int success = 0, no_device = 100;
int refuse() { return no_device; }
int text(const char** words) {
  *words = "no device: a stand-in of the driver";
  return success;
}

}  // namespace

extern "C" {

#define ASSAY_REFUSED(name) \
  int name() { return no_device; }
ASSAY_REFUSED(cuInit)
ASSAY_REFUSED(cuCtxGetCurrent)
ASSAY_REFUSED(cuCtxGetLimit)
ASSAY_REFUSED(cuCtxPopCurrent)
ASSAY_REFUSED(cuCtxPushCurrent)
ASSAY_REFUSED(cuDeviceGet)
ASSAY_REFUSED(cuDeviceGetAttribute)
ASSAY_REFUSED(cuKernelGetAttribute)
ASSAY_REFUSED(cuKernelSetAttribute)
ASSAY_REFUSED(cuLaunchCooperativeKernel)
ASSAY_REFUSED(cuLaunchKernel)
ASSAY_REFUSED(cuLaunchKernelEx)
ASSAY_REFUSED(cuLibraryGetKernel)
ASSAY_REFUSED(cuLibraryLoadData)
ASSAY_REFUSED(cuLibraryLoadFromFile)
ASSAY_REFUSED(cuLibraryUnload)
ASSAY_REFUSED(cuLinkAddData)
ASSAY_REFUSED(cuLinkComplete)
ASSAY_REFUSED(cuLinkCreate)
ASSAY_REFUSED(cuLinkDestroy)
ASSAY_REFUSED(cuOccupancyMaxPotentialClusterSize)
ASSAY_REFUSED(cuStreamGetCtx)

int cuDeviceGetCount(int* count) {
  *count = 0;
  return success;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
int cuGetErrorName(int, const char** words) { return text(words); }
int cuGetErrorString(int, const char** words) { return text(words); }

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* found) {
  void* const self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  *function =
      std::strcmp(name, "cuGetProcAddress") == 0 ? reinterpret_cast<void*>(&cuGetProcAddress_v2) : dlsym(self, name);
  if (!*function) *function = reinterpret_cast<void*>(&refuse);
  if (found) *found = 0;
  return success;
}
int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

}  // extern "C"
