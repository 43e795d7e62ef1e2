#include "harness/fitness/gate/repeats.h"

#include <algorithm>
#include <utility>

namespace assay::gate {

namespace {

constexpr double slack = 1.2;  // a repetition may take longer than those before

// Whether a figure did not hold and more repetitions may change what is said of it.
bool open(const Figure& figure) {
  const auto slow = judge(figure);
  return doubtful(figure) && (!slow || slow->severity != Severity::fault);
}

}  // namespace

Repeats doubtful(std::vector<TestOutcome>& outcomes, const std::vector<const Test*>& planned, double left, int done) {
  Repeats repeats;
  for (const Test* test : planned) {
    bool begun = false;
    for (TestOutcome& one : outcomes) {
      if (one.test != test->name || one.state != TestState::passed) continue;
      if (std::ranges::none_of(one.figures, [](const Figure& figure) { return doubtful(figure); })) continue;
      if (test->alone || !std::exchange(begun, true)) repeats.groups.emplace_back();
      repeats.groups.back().push_back(&one);
    }
  }
  std::erase_if(repeats.groups, [&](const std::vector<TestOutcome*>& group) {
    const auto* longest = *std::ranges::max_element(group, {}, &TestOutcome::seconds);
    const double more = longest->seconds / done;
    const bool undecided =
        std::ranges::any_of(group, [](const TestOutcome* one) { return std::ranges::any_of(one->figures, open); });
    if (!undecided || left < slack * (repeats.seconds + more)) return true;
    repeats.seconds += more;
    return false;
  });
  return repeats;
}

}  // namespace assay::gate
