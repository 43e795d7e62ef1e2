// Ratios of a crosscheck, for people and for machines.
#pragma once

#include "harness/crosscheck/result.h"
#include "reports/model/document.h"

namespace assay::report {

Document crosscheck_document(const crosscheck::Result& result);
// {"schema":1,"tolerance","tools":[{"name","path"}],"remarks","rows":[{"tool","test","bytes","unit","ours","theirs","ratio",
// "low","high","ratios","state"}]}; in base units.
Json crosscheck_json(const crosscheck::Result& result);

}  // namespace assay::report
