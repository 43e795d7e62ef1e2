// The family `probe`: cases that pass, fail, break and hang on purpose, for tests of the code that runs them.
#pragma once

#include "harness/plan/family.h"

namespace assay {

Family probe_family();

}  // namespace assay
