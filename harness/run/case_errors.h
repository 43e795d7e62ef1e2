// What the counters of a rank's GPU and host count while a case runs: errors, and what crossed the ports.
#pragma once

#include "harness/machine/counters.h"
#include "harness/machine/nccl_ports.h"
#include "harness/plan/case.h"
#include "harness/record/record.h"
#include "harness/sensors/gpu_sensors.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

class CaseErrors {
 public:
  // Reads the counters of the GPU before setup, and on a host's first rank those of the host. Returns the GPU's.
  GpuHealth& begin(const std::string& gpu_uuid, const std::string& gpu_pci, bool first_on_host);
  // Adds the check device_errors, which fails, if devices of the host had uncorrected errors. Errors of the GPU belong
  // to the check gpu_errors.
  void check_host(Checks& checks);
  // Has the ports held against what the GPUs of all ranks moved (CaseOutputs::moved). Called on every rank, or on none.
  void expect(const CaseOutputs::Moved& moved, const std::string& gpu_pci, Communicator& comm);
  // Adds the counters that have grown to the record, and flags for the first of them. Call it also after a case broke.
  void record(Record& record);

 private:
  // The growth at the first call, so that check and record agree.
  const std::vector<ErrorCounter>& host_grown();

  std::optional<GpuHealth> gpu_;
  bool host_ = false;
  void record_ports(Record& record) const;

  std::vector<ErrorCounter> host_before_;
  bool first_on_host_ = false;
  std::vector<PortBytes> ports_before_;
  std::vector<GpuBytes> moved_;  // by the ranks of this host; empty: no port is judged
  std::optional<std::vector<ErrorCounter>> host_grown_;
};

}  // namespace assay
