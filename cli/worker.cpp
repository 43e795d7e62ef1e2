// assay worker: started by `assay run` for each rank, not by users.
#include "harness/run/worker.h"

#include "cli/catalogue.h"
#include "cli/command.h"

namespace assay::cli {

Command worker_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("worker", "Started by assay run for each rank");
  return {app, [] { return worker_main(catalogue()); }};
}

}  // namespace assay::cli
