// The family `probe`: cases that hold, fail, break and hang on purpose, for tests of what runs them.
#pragma once

#include "harness/plan/family.h"

namespace assay {

Family probe_family();

}  // namespace assay
