// The exit code of a run directory.
#pragma once

#include "harness/core/error.h"
#include "harness/record/run_dir.h"

namespace assay {

// failed -> 1, error -> 4, fewer cases than planned -> 3; skips never change it.
ExitCode exit_code_of(const RunData& data, std::size_t planned);

}  // namespace assay
