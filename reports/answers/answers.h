// The four questions that a report answers before it shows figures: are they right, are they steady, are they normal
// for such a machine, and what limits them.
#pragma once

#include "harness/fitness/floors/check.h"
#include "harness/runs/run_set.h"
#include "reports/diagnosis/diagnosis.h"
#include "reports/model/document.h"
#include "reports/references/references.h"

#include <string>
#include <vector>

namespace assay::report {

// Whether every answer was checked and correct.
Answer right_answer(const RunSet& runs);

// Whether anything but the run itself could have changed a figure: more than 5 % of a CPU that the case used went to
// others, or a GPU was throttled. Such figures are lower bounds. Unknown for records without this fact (schema 1). With
// floors, an interval that contains a limit is not steady either: measuring again could change the floor's verdict.
Answer steady_answer(const RunSet& runs, const fitness::CheckResult* floors = nullptr);

// Whether the key figures are normal for such a machine: their places among the figures of reference runs of machines
// of the same name, measured in the same way, and their shares of what the parts allow beside the usual ones. Not
// normal: worse than every reference by more than 3 %, the whole interval, or below a usual share; bad: a floor that is
// not met. Unknown without any of these. Figures that others have published are shown beside them and decide nothing.
Answer normal_answer(const RunSet& runs, const References& references, const fitness::CheckResult* floors = nullptr);

// The limit of training steps: the worst finding of diagnosis, or computation itself. Unknown without training.
Answer limit_answer(const RunSet& runs, const std::vector<Diagnosis>& found);

// All four, in this order. `floors`: what the user demands of these runs; null: nothing.
std::vector<Answer> answers_of(const RunSet& runs, const References& references, const std::vector<Diagnosis>& found,
                               const fitness::CheckResult* floors = nullptr);

// Why this record's figure is a lower bound: "others used 0.9 CPUs (python3, pid 77: 0.88)"; empty if it is none.
std::string disturbance_of(const Record& record);

}  // namespace assay::report
