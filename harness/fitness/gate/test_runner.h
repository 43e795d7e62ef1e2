// Runs a gate's tests as trials, and says what each has shown.
#pragma once

#include "harness/fitness/gate/gate.h"
#include "harness/fitness/gate/inspection.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace assay::gate {

class TestRunner {
 public:
  using Outcomes = std::vector<TestOutcome*>;

  // All must outlive this. No trial is left after `stop`; `folder` is for their files.
  TestRunner(const Request& request, Trials& trials, Clock::time_point stop, std::filesystem::path folder);

  double left() const;
  // Seconds that the planned tests take which have not begun: a test that hangs leaves them that time.
  void plan(double seconds) { rest_ += seconds; }
  void begin(const Test& test) { rest_ -= test.seconds; }

  // The audit; absent if it gave no answer.
  std::optional<Inspection> audit(const Test& test, TestOutcome& outcome);
  // Measures a test once more on the devices of `outcomes`, on all at the same time.
  void measure(const Test& test, const Outcomes& outcomes, const std::vector<Target>& targets);

  // Variables of the tests that run a plan.
  void compute_with(Variables variables) { computing_ = std::move(variables); }
  // A quota withholds so many CPUs, which excuses figures.
  void withhold(double cpus) { withheld_cpus_ = cpus; }
  // Flags of records that make this a drill.
  const std::set<std::string>& drills() const { return drills_; }
  bool used_floors() const { return !floors_used_.empty(); }
  // Why the last floor that was for a record could not judge it.
  const std::string& floors_refused() const { return floors_refused_; }

 private:
  std::vector<TrialResult> run(const Test& test, std::vector<Trial> trials, const Outcomes& outcomes);
  void check_disk(const Test& test, TestOutcome& outcome);
  void run_cases(const Test& test, const Outcomes& outcomes, const std::vector<Target>& targets);
  void read_records(const Test& test, RunData run, bool others, TestOutcome& outcome);

  const Request& request_;
  Trials& trials_;
  Clock::time_point stop_;
  std::filesystem::path folder_;
  int runs_ = 0;
  double rest_ = 0;
  double withheld_cpus_ = 0;
  Variables computing_;
  std::set<std::string> floors_used_, drills_;
  std::string floors_refused_;
};

}  // namespace assay::gate
