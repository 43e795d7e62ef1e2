// Verdicts as CI systems read them: a suite of test cases.
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
  std::string detail;   // lines that explain a failure
  std::string output;   // lines about what was found
  double seconds = 0;
};

struct TestSuite {
  std::string name;
  std::string hostname;   // empty if unknown
  std::string timestamp;  // ISO 8601; empty if unknown
  std::vector<TestCase> cases;
};

}  // namespace assay::report
