// The audit of a kernel's log that somebody sends.
#pragma once

#include "cli/options.h"

#include <string>

namespace assay::cli {

// Prints it; `file` may be "-" for stdin. failed: it has a fault. Throws Error (no_data) if no line of the log is a
// message of the kernel, and UsageError as audit_log() does.
ExitCode audit_log_file(const std::string& file, const Outputs& outputs);

}  // namespace assay::cli
