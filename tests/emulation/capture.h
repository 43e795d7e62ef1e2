// The emulation's streams, events and graphs. Work runs as it is enqueued; under capture it becomes a list of closures.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace assay::emulation {

using Work = std::function<void()>;

// An ongoing capture, shared by the stream it began on and those that joined.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;  // that began it
  CUstream_st* origin = nullptr;
  bool broken = false;  // by a call that is not allowed while capturing
  std::vector<Work> works;
  // For each stream, and each event recorded on it: how much of every stream's work precedes it.
  using Seen = std::map<const CUstream_st*, int>;
  std::map<const CUstream_st*, Seen> seen;
};

}  // namespace assay::emulation

struct CUstream_st {
  std::shared_ptr<assay::emulation::Capture> capture;
  unsigned flags = 0;
  int priority = 0;
  int device = 0;
};

struct CUevent_st {
  int device = 0;
  bool timed = true;
  bool recorded = false;
  std::chrono::steady_clock::time_point at;
  // The capture that it was last recorded in.
  std::weak_ptr<assay::emulation::Capture> capture;
  assay::emulation::Capture::Seen seen;
};

struct CUgraph_st {
  std::vector<assay::emulation::Work> works;
};

struct CUgraphExec_st {
  std::vector<assay::emulation::Work> works;
};
