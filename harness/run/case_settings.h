// Settings of the environment in a case's record.
#pragma once

#include "harness/plan/family.h"
#include "harness/record/record.h"

namespace assay {

// Adds this process's settings that change the record's figures (harness/device/settings.h) to its conditions, and
// flags for settings that slow it down. Variables that the family sets for its workers do not count.
void describe_settings(const Family& family, const Params& params, Record& record);

// Merges them from another rank's part: a host may have settings of its own. Ranks that differ are a condition and a
// flag.
void join_settings(Record& whole, const Record& part, int rank);

}  // namespace assay
