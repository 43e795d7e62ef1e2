// What an acceptance has done so far, on disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay::accept {

// One run of a stage's plans on some hosts.
struct Attempt {
  std::string dir;                 // below the acceptance's folder
  std::vector<std::string> hosts;  // that took part
  bool done = false;
  bool complete = false;                    // every case has a record
  std::string error;                        // the last line of its stderr, if it is not complete
  std::map<std::string, std::string> lost;  // hosts that kept it from starting, with what it said

  static void members(auto& self, auto& io) {
    io("dir", self.dir), io("hosts", self.hosts), io("done", self.done), io("complete", self.complete);
    io("error", self.error), io("lost", self.lost);
  }
};

// A host that was accepted once more by itself, as after a repair: an acceptance of its own with a few others.
struct Again {
  std::string host;
  std::string dir;                 // below the acceptance's folder
  std::vector<std::string> hosts;  // the host, and partners that had passed

  static void members(auto& self, auto& io) { io("host", self.host), io("dir", self.dir), io("hosts", self.hosts); }
};

// In DIR/state.json. Judgements are not kept: they follow from the attempts' files.
struct State {
  std::string id;  // its form
  std::string level, level_hash, floors, floors_hash, expect, expect_hash, hostfile, device, started;
  std::vector<std::string> hosts;
  std::map<std::string, std::string> leaves;  // leaf switches of hosts; empty: not known
  std::string no_leaves;                      // why not, if they were asked for
  int ranks_per_host = 0;                     // on GPUs; 0: not known
  bool with_serials = false;
  bool audited = false;
  double seconds = 0;  // of earlier parts
  std::map<std::string, std::vector<Attempt>> stages;
  std::vector<Again> again;  // in the order of time
  bool only_passed = false;  // its hosts are those of the hostfile or job that had passed in another acceptance

  static void members(auto& self, auto& io) {
    io("state", self.id);
    io("level", self.level), io("level_hash", self.level_hash), io("floors", self.floors);
    io("floors_hash", self.floors_hash), io("expect", self.expect), io("expect_hash", self.expect_hash);
    io("hostfile", self.hostfile), io("device", self.device), io("started", self.started);
    io("hosts", self.hosts), io.sparse("leaves", self.leaves), io.sparse("no_leaves", self.no_leaves);
    io("ranks_per_host", self.ranks_per_host), io("with_serials", self.with_serials);
    io("audited", self.audited), io("seconds", self.seconds), io("stages", self.stages);
    io.sparse("again", self.again), io("only_passed", self.only_passed);
  }
};

inline constexpr const char* state_file = "state.json";
inline constexpr const char* state_form = "assay accept 1";

// Throws UsageError if the folder holds no acceptance.
State read_state(const std::filesystem::path& dir);
void write_state(const std::filesystem::path& dir, const State& state);

}  // namespace assay::accept
