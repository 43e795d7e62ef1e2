// The fuse of a fleet: one wrong floors file must not drain every machine. Gates count their drains in a folder that
// all of them see; beyond what the policy allows the fuse blows, and no gate drains until a person resets it.
#pragma once

#include "harness/fitness/gate/policy.h"

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

namespace assay::gate {

struct FuseAnswer {
  std::string problem = {};         // why it could not be asked; else empty
  bool blown = false;               // nothing may be drained
  bool alarm = false;               // this gate has blown it
  std::string since = {}, by = {};  // when, and the host whose drain was too many
  std::size_t drains = 0;           // hosts within the time, those that were withheld at the blowing included
  std::size_t allowed = 0, hosts = 0;

  static void members(auto& self, auto& io) {
    io.null_if_empty("problem", self.problem), io("blown", self.blown), io("alarm", self.alarm);
    io.null_if_empty("since", self.since), io.null_if_empty("by", self.by), io("drains", self.drains),
        io("allowed", self.allowed), io("hosts", self.hosts);
  }
};

// Counts this host as one of the fleet, and with `drain` as one that is to be drained: that may blow the fuse. A host
// that has been counted within the time is not counted again. Any number of processes on any hosts may ask at the same
// time. Asked in a process of its own, as the folder may hang; never throws.
FuseAnswer ask_fuse(const AtMost& most, const std::string& host, std::time_t now, bool drain, double seconds);

// Makes it whole again and forgets the drains. Returns what it was like. Throws UsageError if the policy has no
// limit, Error if the folder cannot be used.
FuseAnswer reset_fuse(const std::optional<Policy>& policy);

// Where it counts: the policy's folder, or that of this host's past verdicts.
std::filesystem::path folder_of(const AtMost& most);

}  // namespace assay::gate
