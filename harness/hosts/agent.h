// A host's servant: starts, watches and ends processes here for the supervisor of a run over several hosts.
#pragma once

#include <string>

namespace assay {

// How an agent finds its supervisor, and what it says at its hello.
struct AgentRequest {
  std::string supervisor;  // HOST:PORT, several separated by commas
  std::string token;
  int rank = 0;  // among the agents
  int size = 1;
  int gpus = 0;                 // of this host, as the CUDA module counts them; 0 in a run on CPUs
  std::string plan;             // fingerprint of the plan, where this host was given one
  double patience_seconds = 0;  // the supervisor may not listen yet
};

// What `assay agent` was told by its environment (ASSAY_SUPERVISOR, ASSAY_RANK, ASSAY_SIZE; under srun the task's
// number) and by ASSAY_TOKEN or the first line of its standard input. Throws UsageError.
AgentRequest agent_request_from_environment();

// Serves until the supervisor lets it go or is gone; every process that it started, and whatever those left behind,
// ends with it within two seconds. Returns the exit code: 0 when it was let go. Throws Error when the supervisor cannot
// be reached or refuses it.
//
// Orders: {"type":"start","id":1,"subcommand":"worker"|"command":"sh text","variables":{...}} starts a process,
// {"type":"stop","id":1} ends one, {"type":"clear","id":2} ends all, {"type":"clock","sent":ns} asks the time,
// {"type":"end"} lets go. It says {"type":"host",...} after its hello, then "output" and "ended" of a process,
// "cleared", "clock" and heartbeats.
int serve_as_agent(const AgentRequest& request);

}  // namespace assay
