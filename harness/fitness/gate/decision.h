// What a gate concludes from what it saw: pure functions, so that recorded evidence can be replayed.
#pragma once

#include "harness/core/words.h"
#include "harness/fitness/fitness.h"
#include "harness/fitness/gate/catalogue.h"
#include "harness/statistics/statistics.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::gate {

// How a gate calls a Fitness: a machine that may be unfit is only suspect, and the job runs.
inline constexpr FitnessWords verdict_words = {"ok", "not_judged", "suspect", "drain"};

// One measurement of a figure that a floor limits.
struct Repetition {
  double value = 0;
  std::optional<Interval> range = {};    // 95 %; absent: the value alone decides
  double shortfall = 0;                  // how far the value is beyond the limit, as a fraction of the limit
  bool below = false;                    // all of the range is beyond the limit
  std::optional<double> outside = {};    // CPUs that others used, or that the hypervisor took; absent: unknown
  std::optional<double> held_back = {};  // CPUs that a quota withheld; absent: unknown
  bool slowed = false;                   // heat or the power supply lowered the GPU's clock
  bool crowded = false;                  // other GPUs were tested meanwhile, from which this figure suffers
};

struct Figure {
  std::string name;  // "throughput of gemm/dtype=f32/..."
  std::string unit;
  double floor = 0;
  std::vector<Repetition> repetitions;
};

enum class TestState { passed, wrong, slow, broke, hung, not_run };
constexpr auto words(TestState) {
  return std::to_array<std::string_view>({"ok", "wrong", "slow", "broke", "hung", "not_run"});
}

// What one test on one device has shown, over all its repetitions.
struct TestOutcome {
  std::string test = {};                 // its name in the catalogue
  std::string device = {};               // of a GPU its PCI address, with the UUID of a slice; empty: the host
  TestState state = TestState::not_run;  // `slow` is decided here, from the figures
  std::string reason = {};               // of wrong, broke, hung and not_run, for people
  bool out_of_memory = false;            // it broke for lack of memory
  double seconds = 0;
  std::optional<double> value = {};  // the first case's figure, whether or not there is a floor
  std::string unit = {};
  std::vector<Figure> figures = {};
};

// Which devices the gate judges: all but the GPUs that are known to be others', named as in `Finding`. A device that
// is not known here may be the job's, so it counts.
struct Scope {
  std::vector<std::string> others;
};

struct Evidence {
  bool audited = false;           // the audit came to its end
  std::vector<Finding> problems;  // of the audit
  std::vector<TestOutcome> tests;
  std::vector<std::string> unseen = {};  // what was required and not seen, as sentences
};

struct Decision {
  Fitness verdict = Fitness::unknown;
  std::vector<Finding> findings;  // of the catalogue's ids, faults first
  std::string why_not = {};       // if it is unknown
};

// How many repetitions, all beyond the floor, make a slow figure hard evidence.
inline constexpr std::size_t needed_repetitions = 3;

// Sentences for the required tests that did not run: "gpu-gemm did not run on 0000:1b:00.0 and 7 more: ...".
std::vector<std::string> unseen(const std::vector<TestOutcome>& tests, const Catalogue& catalogue);

// Whether a figure should be measured again: its last repetition did not hold.
bool doubtful(const Figure& figure);

// What to report about a figure that missed its floor, or nothing if no repetition was beyond it.
// `fault` only if all repetitions are beyond the floor, and in enough of them either nothing that could explain it
// disturbed, or the explanation is itself the finding: a CPU quota (`cause` is the id of its code), a lowered
// clock. Crowded repetitions count only while there are no others, and are never hard evidence.
struct Slowness {
  Severity severity = Severity::warning;
  std::string cause;  // id of the code; empty: the test's own
  std::string text;
};
std::optional<Slowness> judge(const Figure& figure);

// `fail` if there is a finding of severity fault; else `unknown` if something required was not seen, or nothing was
// judged; else `unsure` if there is a warning, else `pass`.
Decision decide(const Evidence& evidence, const Scope& scope, const Catalogue& catalogue);

}  // namespace assay::gate
