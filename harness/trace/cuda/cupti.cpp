// Kernels, copies and fills by CUPTI's activity interface. The library is loaded at run time: only --trace needs it.
#include "harness/trace/gpu_activity.h"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace assay::trace {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::size_t buffer_alignment = 8;

// The functions that are used.
struct Cupti {
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiGetResultString) text = nullptr;

  // Empty when all were found.
  std::string load() {
    void* library = nullptr;
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
      if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    if (!library) return std::string("CUPTI cannot be loaded: ") + dlerror();
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

// One a process: CUPTI's callbacks carry no user data.
struct Collected {
  Cupti cupti;
  std::int64_t (*now)() = nullptr;
  std::mutex mutex;
  struct Waiting {
    GpuActivity activity;
    std::uint32_t correlation;
  };
  std::vector<Waiting> activities;
  std::unordered_map<std::uint32_t, std::int64_t> calls;  // start of a host call by its correlation
  std::int64_t dropped = 0;
};
Collected& collected() {
  static Collected& all = *new Collected;  // callbacks may come while the process ends
  return all;
}

std::uint64_t CUPTIAPI clock_callback() { return static_cast<std::uint64_t>(collected().now()); }

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
  *size = *buffer ? buffer_bytes : 0;
  *most_records = 0;  // as many as fit
}

template <typename Activity>
GpuActivity timed(const Activity& record, std::string name) {
  GpuActivity activity;
  activity.name = std::move(name);
  activity.start_ns = static_cast<std::int64_t>(record.start);
  activity.duration_ns = static_cast<std::int64_t>(record.end - record.start);
  activity.stream = record.streamId;
  return activity;
}

void keep(Collected& all, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      // The first members are the same in every version of the record since CUDA 12.
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel9*>(record);
      GpuActivity activity = timed(kernel, readable(kernel.name));
      activity.communication = kernel.name && std::string_view(kernel.name).find("nccl") != std::string_view::npos;
      all.activities.push_back({std::move(activity), kernel.correlationId});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      all.activities.push_back({timed(copy, copy_name(copy.copyKind)), copy.correlationId});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      all.activities.push_back({timed(set, "memset"), set.correlationId});
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      all.calls.emplace(call.correlationId, static_cast<std::int64_t>(call.start));
      break;
    }
    default: break;
  }
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
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
    for (const CUpti_ActivityKind kind : kinds) collected().cupti.disable(kind);
  }

  std::vector<GpuActivity> take() override {
    Collected& all = collected();
    all.cupti.flush(0);
    const std::lock_guard lock(all.mutex);
    std::vector<GpuActivity> taken;
    taken.reserve(all.activities.size());
    for (auto& [activity, correlation] : all.activities) {
      if (const auto call = all.calls.find(correlation); call != all.calls.end()) activity.launched_ns = call->second;
      taken.push_back(std::move(activity));
    }
    all.activities.clear();
    all.calls.clear();
    return taken;
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
  const auto refused = [&](CUptiResult result, const char* call) {
    if (result == CUPTI_SUCCESS) return false;
    const char* text = nullptr;
    all.cupti.text(result, &text);
    *why_not = std::string(call) + " failed: " + (text ? text : "unknown error");
    return true;
  };
  if (refused(all.cupti.register_clock(clock_callback), "cuptiActivityRegisterTimestampCallback")) return nullptr;
  if (refused(all.cupti.register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks")) return nullptr;
  for (const CUpti_ActivityKind kind : kinds)
    if (refused(all.cupti.enable(kind), "cuptiActivityEnable")) return nullptr;
  return std::make_unique<CuptiRecorder>().release();
}
