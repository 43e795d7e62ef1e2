// The verdicts of floors, for people, for machines and for CI.
#pragma once

#include "harness/fitness/floors/pack.h"
#include "reports/model/document.h"
#include "reports/model/test_suite.h"

namespace assay::report {

// One line per floor, as pytest prints tests, with reasons below it.
Document check_document(const fitness::CheckResult& result);
// Everything in base units: {"schema":1,"counts":{..},"floors":[{"key":..,"verdict":..,"counts":{..},
// "records":[..]}]}; at most the 1,000 worst records of each floor.
Json check_json(const fitness::CheckResult& result);
// One test case per floor, for JUnit; floors that are inconclusive or not judged count as skipped, with the reason.
TestSuite check_suite(const fitness::CheckResult& result);

// In all forms that `assay check` writes. Equal runs and floors give equal bytes.
fitness::VerdictFiles verdict_files(const fitness::CheckResult& result);

}  // namespace assay::report
