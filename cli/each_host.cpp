// assay each-host: started by an agent for --each-host, not by users.
#include "harness/run/each_host_process.h"

#include "cli/catalogue.h"
#include "cli/command.h"
#include "harness/plan/machine.h"

namespace assay::cli {

Command each_host_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("each-host", "Started by assay run --each-host on every host");
  return {app, [] {
            return each_host_main(catalogue(), [](RunRequest& request) {
              request.limits = machine_limits();
              if (request.plan.device == DeviceKind::cuda) request.gpus = require_gpus("cuda");
            });
          }};
}

}  // namespace assay::cli
