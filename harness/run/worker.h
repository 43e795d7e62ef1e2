// The measuring end: one process per rank, which gets its orders over the channel.
#pragma once

#include "harness/plan/family.h"

#include <span>

namespace assay {

// Body of `assay worker`. Reads ASSAY_SUPERVISOR, ASSAY_TOKEN and the launcher's rank variables, binds itself to its
// share of the host's CPUs, then runs cases until it is told to end. Ends at once when its supervisor does.
int worker_main(std::span<const Family> families);

}  // namespace assay
