// A gate among the hosts of a job: each judges itself, all at the same time; then they exchange messages, and the slow
// host or port is named.
#pragma once

#include "harness/fitness/gate/gate.h"
#include "harness/hosts/ask_hosts.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::gate {

// The hosts that are judged together: those of `hostfile` (empty: none), or of the step of `srun` that this process is
// a task of. Absent if that is this host alone, or nothing says so: a batch script or a prolog judges its own host.
// Throws UsageError as find_allocation() does.
std::optional<Allocation> find_job(const std::string& hostfile, const Environment& environment = own_environment);

// A remark for a gate of this host alone, whose launcher gave its job other hosts, too; empty if it did not.
std::string why_only_here(const Environment& environment = own_environment);

// The words by which a host of the job is asked to judge itself within `seconds`.
std::vector<std::string> words_for_host(const Request& request, double seconds);

// As ask_hosts().
using Ask = std::function<std::vector<HostAnswer>(const Allocation&, const std::vector<std::string>&, double seconds)>;

// Half of the budget is for each host by itself. A host whose own gate found hard evidence, or that did not answer, is
// left out of the second half: messages between every two of the others, and an all-reduce of all. Who is slow is
// decided as by `assay accept`, and after a second measurement with other partners; if no time is left for that, the
// host is only suspect. Answer::hosts and Answer::exclude are set. `folder` takes the runs.
Answer run_job_gate(const Request& request, const Allocation& job, const std::string& hostfile, Trials& trials,
                    const Ask& ask, const std::filesystem::path& folder);
// Runs the measurements as children of this process.
Answer run_job_gate(const Request& request, const Allocation& job, const std::string& hostfile);

}  // namespace assay::gate
