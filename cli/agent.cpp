// assay agent, assay remote-shell: started by `assay run` on other hosts, and by its mpirun as a remote shell, not by
// users.
#include "harness/hosts/agent.h"

#include "cli/command.h"
#include "harness/device/device.h"
#include "harness/hosts/remote_shell.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

Command agent_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("agent", "Started by assay run on every host");
  return {app, [] {
            AgentRequest request = agent_request_from_environment();
            if (const char* device = std::getenv("ASSAY_DEVICE"); device && std::string_view(device) == "cuda")
              request.gpus = probe_cuda().gpus;
            return serve_as_agent(request);
          }};
}

Command remote_shell_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("remote-shell", "Started by mpirun for every other host");
  // The words belong to another program: none is a flag of this one.
  app->prefix_command();
  return {app, [app] {
            std::vector<std::string> words = app->remaining();
            if (words.size() < 2) throw UsageError("remote-shell: needs a host and a command");
            const std::string host = words.front();
            words.erase(words.begin());
            return remote_shell_main(host, words);
          }};
}

}  // namespace assay::cli
