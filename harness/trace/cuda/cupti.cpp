// Records kernels, copies and fills by CUPTI's activity API. Loads the library at run time: only --trace needs it.
#include "harness/trace/gpu_activity.h"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <type_traits>
#include <unordered_map>

namespace assay::trace {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::size_t buffer_alignment = 8;
// Kept between two drains; more are only counted. A launch also has a record of its host call, as have calls that
// launch nothing.
constexpr std::size_t max_activities = std::size_t{1} << 20, max_calls = 4 * max_activities;

// Folders outside the loader's search path that may contain CUPTI: the toolkit and Python's wheels keep it in their
// own.
std::vector<std::string> folders() {
  std::vector<std::string> found;
  const auto add = [&](const std::string& base) {
    for (const char* place : {"", "/lib64", "/extras/CUPTI/lib64"}) found.push_back(base + place);
  };
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* all) {
        const std::string_view path(object->dlpi_name ? object->dlpi_name : "");
        const std::size_t slash = path.rfind('/');
        if (slash == std::string_view::npos) return 0;
        const std::string_view file = path.substr(slash + 1);
        if (file.starts_with("libcublasLt.so") || file.starts_with("libcudart.so"))
          static_cast<std::vector<std::string>*>(all)->emplace_back(path.substr(0, slash));
        return 0;
      },
      &found);
  for (const std::string& sibling : std::vector<std::string>(found)) {
    found.push_back(sibling + "/../extras/CUPTI/lib64");
    found.push_back(sibling + "/../../../extras/CUPTI/lib64");  // .../targets/x86_64-linux/lib
    found.push_back(sibling + "/../../cuda_cupti/lib");         // wheels of CUDA 12: one folder per library
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* base = std::getenv(variable)) add(base);
  add("/usr/local/cuda");
  return found;
}

// Prefers the version of this build's CUDA: another may lack its functions, or not support the driver.
void* open_library(std::string& why_not) {
  const std::string own = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
  for (const std::string& name : {own, std::string("libcupti.so")}) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* error = dlerror();
    if (why_not.empty()) why_not = error ? error : name;
    for (const std::string& folder : folders())
      if (void* library = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

// The functions we use.
struct Cupti {
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiGetResultString) text = nullptr;

  // Returns what is missing; empty if nothing is.
  std::string load() {
    std::string why_not;
    void* library = open_library(why_not);
    if (!library) return "CUPTI cannot be loaded: " + why_not;
    std::string missing;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      if (!function) missing = symbol;
    };
    find(enable, "cuptiActivityEnable");
    find(disable, "cuptiActivityDisable");
    find(register_callbacks, "cuptiActivityRegisterCallbacks");
    find(register_clock, "cuptiActivityRegisterTimestampCallback");
    find(next, "cuptiActivityGetNextRecord");
    find(dropped, "cuptiActivityGetNumDroppedRecords");
    find(flush, "cuptiActivityFlushAll");
    find(text, "cuptiGetResultString");
    return missing.empty() ? "" : "this CUPTI has no " + missing;
  }
};

std::string readable(const char* mangled) {
  if (!mangled) return "kernel";
  int status = 0;
  char* name = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string text = status == 0 && name ? name : mangled;
  std::free(name);
  return text;
}

const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "memcpy PtoP";
    default: return "memcpy";
  }
}

// One per process: CUPTI's callbacks carry no user data.
struct Collected {
  Cupti cupti;
  std::int64_t (*now)() = nullptr;
  std::mutex mutex;
  struct Waiting {
    GpuActivity activity;
    std::uint32_t correlation;
  };
  std::vector<Waiting> activities;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // Demangled names by mangled ones: a program has few kernels and launches them often.
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> names;
  std::unordered_map<std::uint32_t, std::int64_t> calls;  // start of a host call by its correlation
  std::int64_t dropped = 0;
};
Collected& collected() {
  static Collected& all = *new Collected;  // callbacks may run while the process exits
  return all;
}

std::uint64_t CUPTIAPI clock_callback() { return static_cast<std::uint64_t>(collected().now()); }

void CUPTIAPI provide_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *size = *buffer ? buffer_bytes : 0;
  *max_records = 0;  // as many as fit
}

const std::string& name_of_kernel(Collected& all, const char* mangled) {
  const std::string_view key(mangled ? mangled : "");
  const auto found = all.names.find(key);
  return found != all.names.end() ? found->second : all.names.emplace(key, readable(mangled)).first->second;
}

// Null if the driver reported no time, as when its own buffers overflow, or if too many are kept already.
template <typename Record>
GpuActivity* add(Collected& all, const Record& record, std::string name) {
  if (record.start == 0 || record.end < record.start || all.activities.size() >= max_activities) {
    ++all.dropped;
    return nullptr;
  }
  GpuActivity activity;
  activity.name = std::move(name);
  activity.start_ns = static_cast<std::int64_t>(record.start);
  activity.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  activity.stream = record.streamId;
  all.activities.push_back({std::move(activity), record.correlationId});
  return &all.activities.back().activity;
}

// The members that are read, at the offsets of every CUPTI since 12.0: the library that is loaded may be another than
// that of the headers, and its later records (kernel 10 in CUDA 13.0, 11 in 13.2) only grow at their ends.
static_assert(offsetof(CUpti_ActivityKernel9, start) == 16 && offsetof(CUpti_ActivityKernel9, end) == 24 &&
              offsetof(CUpti_ActivityKernel9, streamId) == 48 && offsetof(CUpti_ActivityKernel9, correlationId) == 92 &&
              offsetof(CUpti_ActivityKernel9, name) == 104);
static_assert(offsetof(CUpti_ActivityMemcpy6, copyKind) == 4 && offsetof(CUpti_ActivityMemcpy6, start) == 16 &&
              offsetof(CUpti_ActivityMemcpy6, end) == 24 && offsetof(CUpti_ActivityMemcpy6, streamId) == 40 &&
              offsetof(CUpti_ActivityMemcpy6, correlationId) == 44);
static_assert(offsetof(CUpti_ActivityMemset4, start) == 16 && offsetof(CUpti_ActivityMemset4, end) == 24 &&
              offsetof(CUpti_ActivityMemset4, streamId) == 40 && offsetof(CUpti_ActivityMemset4, correlationId) == 44);
static_assert(offsetof(CUpti_ActivityAPI, start) == 8 && offsetof(CUpti_ActivityAPI, correlationId) == 32);

void keep(Collected& all, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      if (GpuActivity* activity = add(all, kernel, name_of_kernel(all, kernel.name)))
        activity->communication = kernel.name && std::string_view(kernel.name).find("nccl") != std::string_view::npos;
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      add(all, copy, copy_name(copy.copyKind));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      add(all, set, "memset");
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      if (all.calls.size() < max_calls) all.calls.emplace(call.correlationId, static_cast<std::int64_t>(call.start));
      break;
    }
    default: break;
  }
}

void CUPTIAPI read_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  Collected& all = collected();
  {
    const std::lock_guard lock(all.mutex);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && all.cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) keep(all, record);
    std::size_t lost = 0;
    if (all.cupti.dropped(context, stream, &lost) == CUPTI_SUCCESS) all.dropped += static_cast<std::int64_t>(lost);
  }
  std::free(buffer);
}

constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
                                        CUPTI_ACTIVITY_KIND_DRIVER};

class CuptiRecorder final : public GpuRecorder {
 public:
  ~CuptiRecorder() override {
    Collected& all = collected();
    for (const CUpti_ActivityKind kind : kinds) all.cupti.disable(kind);
    const std::lock_guard lock(all.mutex);
    all.activities.clear();
    all.calls.clear();
    all.dropped = 0;
  }

  std::vector<GpuActivity> drain() override {
    Collected& all = collected();
    all.cupti.flush(0);  // does not wait for the GPU: the caller has synchronised
    const std::lock_guard lock(all.mutex);
    std::vector<GpuActivity> drained;
    drained.reserve(all.activities.size());
    for (auto& [activity, correlation] : all.activities) {
      if (const auto call = all.calls.find(correlation); call != all.calls.end()) activity.launched_ns = call->second;
      drained.push_back(std::move(activity));
    }
    all.activities.clear();
    all.calls.clear();
    return drained;
  }

  std::int64_t dropped() override {
    const std::lock_guard lock(collected().mutex);
    return std::exchange(collected().dropped, 0);
  }
};

}  // namespace

}  // namespace assay::trace

extern "C" assay::trace::GpuRecorder* assay_make_gpu_recorder(std::int64_t (*now)(), std::string* why_not) {
  using namespace assay::trace;
  Collected& all = collected();
  all.now = now;
  *why_not = all.cupti.load();
  if (!why_not->empty()) return nullptr;
  const auto failed = [&](CUptiResult result, const char* call) {
    if (result == CUPTI_SUCCESS) return false;
    const char* text = nullptr;
    all.cupti.text(result, &text);
    *why_not = std::string(call) + " failed: " + (text ? text : "unknown error");
    return true;
  };
  if (failed(all.cupti.register_clock(clock_callback), "cuptiActivityRegisterTimestampCallback")) return nullptr;
  if (failed(all.cupti.register_callbacks(provide_buffer, read_buffer), "cuptiActivityRegisterCallbacks"))
    return nullptr;
  auto recorder = std::make_unique<CuptiRecorder>();  // its destructor disables what was enabled if a kind is refused
  for (const CUpti_ActivityKind kind : kinds)
    if (failed(all.cupti.enable(kind), "cuptiActivityEnable")) return nullptr;
  return recorder.release();
}
