// A traced job as a record and a screen of text.
#pragma once

#include "harness/json/fwd.h"
#include "harness/kineto/job.h"
#include "harness/record/record.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace assay::kineto {

// The parts of a GPU's step; those that GPUs and hosts have in common bear the same names.
void add_gpu_spans(const std::string& of, const GpuParts& parts, std::vector<std::pair<std::string, double>>& spans);
// Kernels or operators and collectives, as run.json has them.
Json trace_of(const Job& job);

// Lines for people: where the steps of the GPUs go; the heaviest kernels or operators, and the collectives.
std::string gpu_bars(const Job& job, const std::string& title);
std::string uses_text(const Job& job);

// Key "command/name=NAME" as of a watched job; its figure is the time of a step, its spans are the step's parts.
Record record_of(const Job& job, const std::string& name);
// A new run directory with this record, and the kernels and collectives in run.json.
void write_job(const Job& job, const Record& record, const std::filesystem::path& out);

// Writes the job's record and returns what people read of it: what a step took, where it went, what limits it, the
// heaviest kernels and the collectives.
std::string import_job(const Job& job, const std::string& name, const std::string& out);

}  // namespace assay::kineto
