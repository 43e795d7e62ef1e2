// Runs one case on this rank, and merges the ranks' parts into one record.
#pragma once

#include "harness/plan/plan.h"
#include "harness/record/record.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace assay {

// One case to run, as the supervisor sends it to every rank.
struct CaseOrder {
  const Family* family = nullptr;
  Params params;
  std::string key;
  World world;
  std::uint64_t seed = 0;
  int attempt = 1;
  ProtocolOverrides protocol;
  std::map<std::string, std::string> labels;  // the run's
  std::vector<std::string> flags;             // known before the case runs: oversubscribed
  std::set<Fault> faults;
  std::vector<MeasuredPeak> peaks;  // measured earlier in this run

  static void members(auto& self, auto& io) {  // but for the family, which the message names
    io("key", self.key), io("params", self.params), io("world", self.world), io("seed", self.seed);
    io("attempt", self.attempt), io("protocol", self.protocol), io("labels", self.labels), io("flags", self.flags);
    io("faults", self.faults), io("peaks", self.peaks);
  }
};

// Equal to Identity::unplaced() of the case's records.
Identity identity_of(const PlannedCase& planned, DeviceKind device);

// A record with all that is known before the case runs: key, params, seed, labels, flags, start. Flags make it not
// comparable.
Record blank_record(const CaseOrder& order, DeviceKind device);

// The worker's services to its cases besides device and communicator.
struct Surroundings {
  std::filesystem::path cache_dir;
  std::filesystem::path run_dir;
  std::function<void(const std::string& name, std::string_view text, bool truncate)> write_file;
  std::function<void(Fault)> tell_fault;  // called before a fault is injected, which may end this process
};

// Runs the case and returns this rank's part of its record: rank 0's part has samples, metrics and telemetry, the
// other parts have checks, flags and spans. Never throws: an exception becomes status `error` with its message. Ranks
// agree on skips. After an `error` on one rank the others may hang in a collective: with several ranks, the caller must
// then end the group.
Record execute_case(const CaseOrder& order, Device& device, Communicator& comm, const Surroundings& surroundings);

// Merges one part per rank, in any order; throws Error if rank 0's is missing. The worst status wins (error, failed,
// skipped, ok). A check passes if it passes on every rank, and its worst value is kept. `transport` lists the
// transports of all ranks. A flag names a rank that is much slower than the others.
Record merge_parts(std::vector<Record> parts);

// Flags which of the requested faults were injected, on any rank, and which were not. Injected faults make the record
// not comparable. Does nothing if the case was skipped.
void flag_faults(Record& record, const std::set<Fault>& asked, const std::set<Fault>& injected);

// Now, in the format of records: "2026-01-01T00:00:00Z".
std::string utc_now();
// `moment` in that format, less the nanoseconds; returned unchanged if its format is wrong.
std::string earlier(const std::string& moment, std::int64_t nanoseconds);

}  // namespace assay
