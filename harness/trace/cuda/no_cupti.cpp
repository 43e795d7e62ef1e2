// Replaces cupti.cpp if the toolkit has no cupti.h.
#include "harness/trace/gpu_activity.h"

extern "C" assay::trace::GpuRecorder* assay_make_gpu_recorder(std::int64_t (*)(), std::string* why_not) {
  *why_not = "this build was made without CUPTI's headers";
  return nullptr;
}
