// A worker's timeline under --trace: collected per case, merged with its GPU's activity, sent to the supervisor.
#pragma once

#include "harness/device/device.h"
#include "harness/record/record.h"
#include "harness/run/worker_link.h"
#include "harness/trace/gpu_activity.h"

#include <memory>
#include <string>
#include <vector>

namespace assay {

class Timeline {
 public:
  // Starts collecting if ASSAY_TRACE is set.
  Timeline(WorkerLink& link, DeviceKind device);

  // Sends the spans collected since the last call. On a GPU `record` gets its GPU time by span, or a label with the
  // reason why there is none.
  void send_case(Record& record);
  // Sends the spans collected after the last case.
  void send_rest();

 private:
  void send(std::vector<trace::Entry> entries);

  WorkerLink& link_;
  std::unique_ptr<trace::GpuRecorder> gpu_;
  std::string why_no_gpu_;
};

}  // namespace assay
