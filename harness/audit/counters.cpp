// Error counters that are not zero.
#include "harness/machine/counters.h"

#include "harness/audit/areas.h"

#include <fmt/format.h>

namespace assay::audit {

namespace {

struct Rule {
  const char* counter;
  const char* problem;
  std::uint64_t at_least;
};

// GPUs' own counters are in gpu.cpp. Thresholds: links go down once or twice while a machine starts; ports count a few
// symbol errors when a cable is plugged in; corrected PCI Express errors are rare on a good link.
constexpr Rule rules[] = {{"aer_fatal", "aer-fatal", 1},
                          {"aer_nonfatal", "aer-nonfatal", 1},
                          {"aer_correctable", "aer-corrected", 100},
                          {"ue", "memory-uncorrected", 1},
                          {"ce", "memory-corrected", 1},
                          {"link_downed", "link-flaps", 1},
                          {"carrier_down", "link-flaps", 3},
                          {"carrier_changes", "link-flaps", 6},
                          {"link_error_recovery", "nic-errors", 1},
                          {"symbol_error", "nic-errors", 100},
                          {"port_rcv_errors", "nic-errors", 100},
                          {"local_link_integrity_errors", "nic-errors", 1},
                          {"excessive_buffer_overrun_errors", "nic-errors", 1},
                          {"rx_crc_errors", "nic-errors", 100},
                          {"file_system_errors", "filesystem-errors", 1}};

}  // namespace

void audit_counters(const Subject& subject, Report& report) {
  for (const ErrorCounter& counter : read_error_counters(subject.root, nullptr))
    for (const Rule& rule : rules)
      if (counter.name == rule.counter && counter.value >= rule.at_least)
        report.add(rule.problem, counter.device, fmt::format("{} {}", counter.name, counter.value));
}

}  // namespace assay::audit
