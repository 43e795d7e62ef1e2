// Running one case on this rank, and joining what the ranks say into one record.
#pragma once

#include "harness/plan/plan.h"
#include "harness/record/record.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace assay {

// One case as it is to be run; what the supervisor sends to every rank.
struct CaseOrder {
  const Family* family = nullptr;
  Params params;
  std::string key;
  World world;
  std::uint64_t seed = 0;
  int attempt = 1;
  ProtocolOverrides protocol;
  std::map<std::string, std::string> labels;  // the run's
  std::vector<std::string> flags;             // known before the case: oversubscribed
  std::set<Fault> faults;
  std::vector<MeasuredPeak> peaks;  // measured so far in this run
};

// Equal to Identity::unplaced() of the case's records.
Identity identity_of(const PlannedCase& planned, DeviceKind device);

// A record with everything that is known before the case runs: key, params, seed, labels, flags, start.
// Oversubscription makes it not comparable.
Record blank_record(const CaseOrder& order, DeviceKind device);

// What a worker lends to its cases beside device and ranks.
struct Surroundings {
  std::filesystem::path cache_dir;
  std::filesystem::path run_dir;
  std::function<void(const std::string& name, std::string_view text, bool anew)> write_file;
  std::function<void(Fault)> tell_fault;  // before a fault is injected: it may end this process
};

// Runs the case and returns this rank's part of its record: rank 0's holds samples, metrics and telemetry, the others'
// their checks, flags and spans. Never throws: what breaks becomes status `error` with its message. Skips are agreed
// between the ranks. After an `error` of one rank the others may wait in a collective for ever: in a world of several
// ranks the caller must then end the group.
Record execute_case(const CaseOrder& order, Device& device, Communicator& comm, const Surroundings& surroundings);

// One record from one part a rank, in any order; throws Error when rank 0's is missing. The worst status wins
// (error, failed, skipped, ok), a check passes when it passes on every rank, and its worst value is kept. The choice
// `transport` holds the ways of all ranks. A rank that is much slower than the others is named by a flag.
Record merge_parts(std::vector<Record> parts);

// Says in a record which of the faults that were asked for were injected, on any rank, and which were not. Injected
// ones make it not comparable. Nothing for a case that was skipped.
void flag_faults(Record& record, const std::set<Fault>& asked, const std::set<Fault>& injected);

// This moment as records write it: "2026-01-01T00:00:00Z".
std::string utc_now();
// Such a moment, so many nanoseconds earlier; what is no moment stays as it is.
std::string earlier(const std::string& moment, std::int64_t nanoseconds);

}  // namespace assay
