// Stand-ins of the CUDA runtime's streams, events, capture and graphs. Streams are inline: their work is complete when
// the call returns, so waiting for an event is a no-op. Capture has the rules and errors of the real one.
#include "tests/emulation/capture.h"
#include "tests/emulation/runtime.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>

namespace assay::emulation {

namespace {

std::recursive_mutex mutex;
std::set<Capture*>& captures() {  // ongoing ones
  static auto& all = *new std::set<Capture*>;
  return all;
}
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

std::shared_ptr<Capture> capture_of(cudaStream_t stream) {
  const bool own = stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
  return own ? stream->capture : nullptr;
}

int device_of(cudaStream_t stream) {
  const bool own = stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread;
  return own ? stream->device : current_device();
}

// Work on the legacy stream would wait for every blocking stream, so it is rejected while one is captured.
cudaError_t refuse_implicit(cudaStream_t stream) {
  if (stream && stream != cudaStreamLegacy) return cudaSuccess;
  for (Capture* capture : captures()) {
    if (capture->origin->flags & cudaStreamNonBlocking) continue;
    capture->broken = true;
    return cudaErrorStreamCaptureImplicit;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t check_stream(cudaStream_t stream) {
  return device_of(stream) == current_device() ? cudaSuccess : report(cudaErrorInvalidResourceHandle);
}

cudaError_t refuse_in_capture() {
  const std::lock_guard lock(mutex);
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (Capture* capture : captures()) {
    const bool mine = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (!mine && (capture->mode != cudaStreamCaptureModeGlobal || thread_mode != cudaStreamCaptureModeGlobal)) continue;
    capture->broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

namespace {
std::atomic<std::chrono::steady_clock::rep> uncounted_ticks{0};
}

void uncount(std::chrono::steady_clock::duration time) { uncounted_ticks += time.count(); }

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  {
    const std::lock_guard lock(mutex);
    if (const cudaError_t error = refuse_implicit(stream); error != cudaSuccess) return report(error);
    if (const auto capture = capture_of(stream)) {
      if (capture->broken) return report(cudaErrorStreamCaptureInvalidated);
      capture->works.push_back(std::move(work));
      ++capture->seen[stream][stream];
      return cudaSuccess;
    }
  }
  const OpenMemory open;
  work();
  return cudaSuccess;
}

namespace {

// Whether the host may wait for `stream`.
cudaError_t wait_for(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (const auto capture = capture_of(stream)) {
    capture->broken = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (const cudaError_t error = refuse_implicit(stream); error != cudaSuccess) return error;
  return sticky_error();
}

cudaError_t run(const std::vector<Work>& works) {
  for (const Work& work : works) {
    work();
    if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return cudaSuccess;  // reported at the next wait
  }
  return cudaSuccess;
}

}  // namespace

}  // namespace assay::emulation

using namespace assay::emulation;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  *stream = new CUstream_st{nullptr, flags, priority, current_device()};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = stream->flags;
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return report(wait_for(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) { return report(wait_for(stream)); }
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, [=] { function(data); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  const auto theirs = event->capture.lock();
  const auto mine = capture_of(stream);
  if (!theirs) {
    // Recorded before the capture began: nothing in the graph to wait for.
    if (!mine || !event->recorded) return cudaSuccess;
    mine->broken = true;
    return report(cudaErrorStreamCaptureIsolation);
  }
  if (theirs->broken) return report(cudaErrorStreamCaptureInvalidated);
  if (mine && mine != theirs) {
    mine->broken = theirs->broken = true;
    return report(cudaErrorStreamCaptureMerge);
  }
  stream->capture = theirs;
  auto& seen = theirs->seen[stream];
  for (const auto& [other, count] : event->seen) seen[other] = std::max(seen[other], count);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  *event = new CUevent_st;
  (*event)->device = current_device();
  (*event)->timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  if (event->device != device_of(stream)) return report(cudaErrorInvalidResourceHandle);
  const auto stamp = [event] {
    event->at = std::chrono::steady_clock::now() - std::chrono::steady_clock::duration(uncounted_ticks),
    event->recorded = true;
  };
  const auto capture = capture_of(stream);
  if (!capture || flags & cudaEventRecordExternal) {
    event->capture.reset();
    return enqueue(stream, stamp);
  }
  if (capture->broken) return report(cudaErrorStreamCaptureInvalidated);
  event->capture = capture;
  event->seen = capture->seen[stream];
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(mutex);
  if (const auto capture = event->capture.lock()) {
    capture->broken = true;
    return report(cudaErrorCapturedEvent);
  }
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return report(error);
  return report(sticky_error());
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  if (!start->timed || !stop->timed || !start->recorded || !stop->recorded || start->device != stop->device)
    return report(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(stop->at - start->at).count();
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t lost = sticky_error(); lost != cudaSuccess) return report(lost);
  if (!stream || stream == cudaStreamLegacy) return report(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return report(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>();
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->origin = stream;
  captures().insert(stream->capture.get());
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  const auto capture = capture_of(stream);
  if (!capture) return report(cudaErrorIllegalState);
  if (capture->origin != stream) {
    capture->broken = true;
    return report(cudaErrorStreamCaptureUnmatched);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return report(cudaErrorStreamCaptureWrongThread);
  captures().erase(capture.get());
  bool joined = true;
  for (const auto& [other, seen] : capture->seen) {
    const auto own = seen.find(other);
    if (other != stream && own != seen.end() && capture->seen[stream][other] < own->second) joined = false;
    const_cast<CUstream_st*>(other)->capture.reset();
  }
  stream->capture.reset();
  if (capture->broken) return report(cudaErrorStreamCaptureInvalidated);
  if (!joined) return report(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->works)};
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t error = refuse_implicit(stream); error != cudaSuccess) return report(error);
  const auto capture = capture_of(stream);
  *status = !capture          ? cudaStreamCaptureStatusNone
            : capture->broken ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->works};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return enqueue(stream, [executable] { run(executable->works); });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->works.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
