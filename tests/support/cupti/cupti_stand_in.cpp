// A stand-in for libcupti.so that plays back records, so that their reader can be tested on any machine: each flush
// returns one buffer with a launch and its kernel, work without a time, a copy, a fill and an NCCL kernel.
// $ASSAY_CUPTI_REFUSES: enabling the second kind fails, as it does while another profiler is active.
#include <cupti.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace {

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
CUpti_TimestampCallbackFunc timestamp = nullptr;
std::set<int> enabled;
std::size_t lost = 0;

template <typename Record>
void put(std::uint8_t* buffer, std::size_t& at, Record record) {
  std::memcpy(buffer + at, &record, sizeof record);
  at += sizeof record;
}

std::size_t size_of(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

template <typename Record>
Record timed(CUpti_ActivityKind kind, std::uint64_t start, std::uint64_t end, std::uint32_t correlation) {
  Record record{};
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.correlationId = correlation;
  return record;
}

CUpti_ActivityKernel9 kernel(const char* name, std::uint64_t start, std::uint64_t end, std::uint32_t correlation) {
  auto record = timed<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, start, end, correlation);
  record.name = name;
  record.streamId = 7;
  return record;
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  timestamp = callback;
  return enabled.empty() ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc on_request,
                                           CUpti_BuffersCallbackCompleteFunc on_complete) {
  request = on_request;
  complete = on_complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (!request) return CUPTI_ERROR_INVALID_OPERATION;
  if (std::getenv("ASSAY_CUPTI_REFUSES") && !enabled.empty()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  enabled.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  enabled.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_ERROR_OF_THE_STAND_IN";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = lost;
  lost = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  auto* next = reinterpret_cast<std::uint8_t*>(*record);
  next = next ? next + size_of(**record) : buffer;
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, max_records = 0, at = 0;
  request(&buffer, &size, &max_records);
  const std::uint64_t now = timestamp();
  put(buffer, at, timed<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME, now, now + 5, 1));
  put(buffer, at, kernel("_ZN5assay4sumsEPKf", now + 10, now + 30, 1));
  put(buffer, at, kernel("_ZN5assay4sumsEPKf", 0, 0, 2));
  put(buffer, at, kernel("_ZN5assay4sumsEPKf", now + 30, now + 20, 3));
  auto copy = timed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, now + 40, now + 50, 4);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  put(buffer, at, copy);
  put(buffer, at, timed<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, now + 60, now + 61, 5));
  put(buffer, at, kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", now + 70, now + 90, 6));
  lost = 3;
  complete(nullptr, 0, buffer, size, at);
  return CUPTI_SUCCESS;
}

// The number of enabled kinds of records.
std::size_t assay_stand_in_enabled() { return enabled.size(); }

}  // extern "C"
