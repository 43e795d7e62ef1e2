// Reads a trace of the PyTorch profiler (torch.profiler's export_chrome_trace) as a stream, gzipped or not. Memory
// grows by 16 bytes for each kernel, copy and outermost operator.
#pragma once

#include "harness/kineto/gzip.h"
#include "harness/kineto/trace.h"

namespace assay::kineto {

// `step` names the ranges that are steps; empty: ProfilerStep#N. Throws UsageError "FILE: ..." for what is no whole
// trace or has no steps.
RankTrace read_trace(const Source& bytes, const std::string& file, const std::string& step = {});

}  // namespace assay::kineto
