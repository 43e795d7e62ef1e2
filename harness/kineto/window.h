// The traces of a watched job's recorded steps, for harness/watch, which knows no traces.
#pragma once

#include "harness/watch/window.h"

namespace assay::kineto {

watch::TraceReader trace_reader();

}  // namespace assay::kineto
