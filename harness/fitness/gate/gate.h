// A gate: short tests of this machine within a budget, and what they mean for the next job.
#pragma once

#include "harness/core/clock.h"
#include "harness/fitness/floors/floors.h"
#include "harness/fitness/gate/decision.h"
#include "harness/fitness/gate/fuse.h"
#include "harness/fitness/gate/guard.h"
#include "harness/machine/cpu_ticks.h"
#include "harness/process/process.h"
#include "harness/run/trial.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::gate {

struct Request {
  Catalogue catalogue;
  double budget = 30;  // s
  Clock::time_point start;
  std::string gpus;  // of --gpus
  std::optional<fitness::Floors> floors;
  std::string expect = {};  // file of what the machine should have
  std::optional<Policy> policy = {};
  std::string profile = {};
  bool observe = false;                    // what is found is kept, and nothing follows from it
  std::vector<std::string> families = {};  // that this build knows
  const Code* inject = nullptr;            // into `catalogue`; null: nothing
  std::vector<std::string> remarks = {};   // for the notes, of leave_environment() and why_only_here(); may be empty
};

// A host of a job that was judged with the job's other hosts (job.h).
struct JobHost {
  std::string host;
  Fitness verdict = Fitness::unknown;
  Fitness own = Fitness::unknown;  // by its own gate alone
  bool absent = false;             // it did not answer
  bool asked = true;
  std::size_t gpus = 0;  // that its own gate tested
};

struct Answer {
  Decision decision;
  std::vector<TestOutcome> tests;
  std::vector<std::string> notes;  // what was left out, and why
  std::string past;                // what earlier gates of this host found
  std::optional<FuseAnswer> fuse;  // absent: nothing limits drains, or nobody asked
  double seconds = 0;
  std::vector<JobHost> hosts = {};        // of a gate among the hosts of a job
  std::vector<std::string> exclude = {};  // of them, those that the job should not use
};

// What a gate asks this host besides its trials. Tests make it up.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual Variables environment() const { return variables_of_launcher(); }
  // Slurm's jobs with processes here, without `own`.
  virtual std::vector<std::string> other_jobs(const std::string& own) const;
  // PCI addresses, for a machine that was not audited.
  virtual std::vector<std::string> gpus() const;
  virtual std::optional<CpuTicks> ticks() const;
  // Whether this is the only gate on the host from now on.
  virtual bool alone() = 0;
  // The file of past verdicts. Throws Error for root's gate if another user could have written it.
  virtual std::filesystem::path memory() const;
  // As computing_for().
  virtual Computing computing(const std::filesystem::path&, bool) const { return {}; }
};

// The seconds of --budget, else those of the profile, if there is one. Throws UsageError.
double budget_of(const std::string& flag, const Profile* profile);

// Runs the tests and decides. When it returns, no process that it started is left, except what the kernel does not let
// die, and no file but the host's memory of past verdicts. Throws UsageError for what only shows then (floors of
// another unit).
Answer run_gate(const Request& request, Trials& trials, Surroundings& host);
// On this host, by children of this process.
Answer run_gate(const Request& request);

}  // namespace assay::gate
