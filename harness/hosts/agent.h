// The process on each host that starts, watches and ends processes there for the supervisor of a run.
#pragma once

#include <string>

namespace assay {

// How an agent reaches its supervisor, and what its hello says.
struct AgentRequest {
  std::string supervisor;  // HOST:PORT, or several separated by commas
  std::string token;
  int rank = 0;  // among the agents
  int size = 1;
  int gpus = 0;                 // of this host, as counted by the CUDA module; 0 in a run on CPUs
  std::string plan;             // fingerprint of the plan that this host was given, if any
  double patience_seconds = 0;  // to retry: the supervisor may not listen yet
};

// Makes the request of `assay agent` from ASSAY_SUPERVISOR, ASSAY_RANK and ASSAY_SIZE (under srun: its task's number),
// and ASSAY_TOKEN or the first line of standard input. Throws UsageError.
AgentRequest agent_request_from_environment();

// Serves until the supervisor releases it or is gone; then every process that it started, and whatever those left
// behind, ends within two seconds. Returns the exit code: 0 when it was released. Throws Error when the supervisor
// cannot be reached or refuses it.
int serve_as_agent(const AgentRequest& request);

}  // namespace assay
