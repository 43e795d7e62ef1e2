// Trials: runs of this program that a caller can kill, each in a process of its own.
#pragma once

#include "harness/process/run.h"
#include "harness/record/run_dir.h"

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Trial {
  std::vector<std::string> plan = {};  // plans and families, as `assay run` takes them
  std::string filter = {};             // regular expression of keys; empty: all cases
  std::string device = {};             // auto, cpu, cuda; empty: auto
  std::optional<int> ranks = {};       // absent: the plan's
  std::string hosts = {};              // "a:1,b:1"; empty: all of the hostfile or the job
  std::string hostfile = {};           // empty: none
  bool each_host = false;              // every host runs the plan by itself
  std::string inject = {};             // a fault; empty: none
  std::filesystem::path out = {};      // the run directory, which is resumed if it holds a run; empty: no plan is run
  // Another command of this program in place of a plan: "gate-test", "audit".
  std::vector<std::string> command = {};

  Variables environment = inherited_variables();              // all of it
  double deadline = std::numeric_limits<double>::infinity();  // seconds from its start until it is ended
  double grace_seconds = 0;                                   // that it is given to end by itself; 0: none
  std::filesystem::path log = {};                             // where its standard output goes; empty: to the result
  std::function<void(std::string_view)> on_errors = {};       // is called with its standard error as it comes
};

struct TrialResult {
  std::optional<RunData> run = {};  // what its directory holds; absent: there is none
  std::optional<Ended> ended = {};  // if hosts were lost, even before there was a directory
  // Why it did not come to its end: timeout at the deadline, refused as a bad request, crashed by a signal or with a
  // code of its own; absent: it did, whatever its records say.
  std::optional<Failure> failure = {};
  bool complete = false;         // every case has a record
  std::optional<int> code = {};  // its exit code, if it ended by itself
  double seconds = 0;            // wall time
  std::string output = {};       // its standard output
  std::string errors = {};       // the tail of its standard error, for people
};

// Runs trials. Tests give one that makes up what comes of them, and its own time.
class Trials {
 public:
  virtual ~Trials() = default;
  // Several at the same time, with their results in the same order. Throws Error if a process cannot be started, and
  // what read_run() throws for a directory that cannot be read.
  virtual std::vector<TrialResult> run(const std::vector<Trial>& trials) = 0;
  // Sleeps until then, or until a signal comes.
  virtual void wait(Clock::time_point until) = 0;
  virtual Clock::time_point now() const = 0;
  // Whether a signal that ends a run came. Trials are then over at once, and their results mean nothing.
  virtual bool interrupted() const = 0;
};

// As children of this process. For one thread, and once per process (see Children).
class ChildTrials final : public Trials {
 public:
  // As of Children.
  explicit ChildTrials(const std::string& ends, double death_seconds = 5, std::function<void()> idle = {})
      : children_(ends, death_seconds, std::move(idle)) {}

  std::vector<TrialResult> run(const std::vector<Trial>& trials) override;
  void wait(Clock::time_point until) override { children_.wait(until); }
  Clock::time_point now() const override { return Clock::now(); }
  bool interrupted() const override { return children_.interrupted(); }

 private:
  Children children_;
};

// The words of a trial's command after the program's name, for a run whose directory is new, or is resumed.
std::vector<std::string> words_of(const Trial& trial, bool resumed);

}  // namespace assay
