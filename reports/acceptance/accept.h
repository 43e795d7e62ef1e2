// The table of an acceptance: for the terminal and the page, as JSON and as CSV.
#pragma once

#include "harness/fitness/cluster/cluster.h"
#include "reports/model/document.h"

#include <string>
#include <string_view>

namespace assay::report {

// The last screen, which fits one also for a thousand hosts: what was accepted and whether it passed, how many hosts,
// what was not measured, a line for each host that failed or may have (at most 20), and what to do next. `dir`: the
// acceptance's folder.
Document accept_screen(const fitness::Acceptance& acceptance, const std::string& dir);
// What was not measured, the table, then what is to be done for each failed host.
Document accept_document(const fitness::Acceptance& acceptance);
// {"schema":1,"level","verdict","seconds","hosts":[{"host","state","checks":[{"name","state","figure","floor",
//  "unit","of","evidence"}],"failed":{..}}],"not_measured":[{"floors","key",..,"reason"}],"notes"}; base units.
Json accept_json(const fitness::Acceptance& acceptance, bool with_serials);
// One row per host and check (RFC 4180): host,check,state,of,figure,unit,bound,floor,evidence
std::string accept_csv(const fitness::Acceptance& acceptance);

}  // namespace assay::report
