// How documents and CI systems show whether something is fit.
#pragma once

#include "harness/fitness/fitness.h"
#include "reports/model/document.h"
#include "reports/model/test_suite.h"

namespace assay::report {

constexpr Tone tone_of(Fitness fitness) {
  return fitness == Fitness::pass     ? Tone::good
         : fitness == Fitness::fail   ? Tone::bad
         : fitness == Fitness::unsure ? Tone::warn
                                      : Tone::faint;
}

// The tone of a whole document: somebody has to look at what is unknown.
constexpr Tone verdict_tone(Fitness fitness) {
  return tone_of(fitness == Fitness::unknown ? Fitness::unsure : fitness);
}

// JUnit knows no third state: what nobody could judge counts as skipped.
constexpr TestCase::Outcome junit_outcome(Fitness fitness) {
  return fitness == Fitness::pass   ? TestCase::Outcome::passed
         : fitness == Fitness::fail ? TestCase::Outcome::failed
                                    : TestCase::Outcome::skipped;
}

}  // namespace assay::report
