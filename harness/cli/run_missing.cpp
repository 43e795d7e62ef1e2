// Stands in where the room that runs plans is not part of the build: everything but running works.
#include "harness/run/run.h"

namespace assay {

ExitCode run_plan(const RunRequest&, std::span<const Family>) { throw Error("this build cannot run plans, only list and expand them"); }

}  // namespace assay
