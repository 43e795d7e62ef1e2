// What was learned from healthy machines, for people and for machines.
#pragma once

#include "harness/fitness/floors/learn.h"
#include "reports/model/document.h"

namespace assay::report {

Document learned_document(const fitness::LearnedFloors& learned);
// {"schema":1,"floors":[..],"without":[..],"apart":[..],"notes":[..]}, in base units.
Json learned_json(const fitness::LearnedFloors& learned);

}  // namespace assay::report
