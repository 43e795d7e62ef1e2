// Verdicts in the form that continuous-integration systems read: a suite of test cases.
#pragma once

#include <string>
#include <vector>

namespace assay::report {

struct TestCase {
  enum class Outcome { passed, failed, skipped };

  std::string classname;
  std::string name;
  Outcome outcome = Outcome::passed;
  std::string message;  // why it failed or was skipped
  std::string detail;   // of a failure, line by line
  std::string output;   // what was found, line by line
  double seconds = 0;
};

struct TestSuite {
  std::string name;
  std::string hostname;   // empty: not known
  std::string timestamp;  // ISO 8601; empty: not known
  std::vector<TestCase> cases;
};

}  // namespace assay::report
