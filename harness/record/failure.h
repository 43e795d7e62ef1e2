// Why a case failed or broke, in the same words in reports and in the history.
#pragma once

#include "harness/record/record.h"

#include <string>

namespace assay {

// The checks that failed and the first line of the reason if it tells more: "check wrong_elements: 3 wrong elements",
// "check sum", "killed by signal 9".
std::string failure_of(const Record& record);

}  // namespace assay
