// What the error counters of a rank's GPU and host grow by while a case runs.
#pragma once

#include "harness/machine/counters.h"
#include "harness/plan/case.h"
#include "harness/record/record.h"
#include "harness/sensors/gpu_sensors.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

class CaseErrors {
 public:
  // Reads the counters before setup: of the GPU, and on a host's first rank those of the host. Returns the GPU's.
  GpuHealth& begin(const std::string& gpu_uuid, const std::string& gpu_pci, bool first_on_host);
  // If devices of the host had uncorrected errors, the check device_errors, which fails. Those of the GPU are the check
  // gpu_errors.
  void check_host(Checks& checks);
  // Adds what has grown to the record, and flags for the first of it. Also after a case that broke.
  void record(Record& record);

 private:
  // By how much they had grown at the first call: check and record say the same.
  const std::vector<ErrorCounter>& host_grown();

  std::optional<GpuHealth> gpu_;
  bool host_ = false;
  std::vector<ErrorCounter> host_before_;
  std::optional<std::vector<ErrorCounter>> host_grown_;
};

}  // namespace assay
