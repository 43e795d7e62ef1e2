// A traced job as a record and a screen of text.
#pragma once

#include "harness/kineto/job.h"
#include "harness/record/record.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::kineto {

// Key "command/name=NAME" as of a watched job; its figure is the time of a step, its spans are the step's parts.
Record record_of(const Job& job, const std::string& name);
// A new run directory with this record, and the kernels and collectives in run.json.
void write_job(const Job& job, const Record& record, const std::filesystem::path& out);

// Writes the job's record and returns what people read of it: what a step took, where it went, what limits it, the
// heaviest kernels and the collectives.
std::string import_job(const Job& job, const std::string& name, const std::string& out);

}  // namespace assay::kineto
