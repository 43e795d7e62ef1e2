// Asks a child process for what may hang in the kernel or a driver, crash, or load large libraries that start threads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct ChildAnswer {
  std::optional<std::string> text;  // what the function returned
  // Else why there is none: "no answer within 2 s", "killed by SIGSEGV (signal 11)", or what the function threw.
  std::string problem;
  bool late = false, threw = false;
  int signal = 0;  // that the child died of
};

// Whether the child runs the handlers of std::exit() once the function has returned. Those of libraries may be slow.
enum class ExitHandlers { skip, run };

// Calls the function in a forked child, which is killed after that time. A child that the kernel holds even then is
// left to it. Never throws: where there can be no process, the answer says so.
ChildAnswer ask_child(const std::function<std::string()>& function, double seconds,
                      ExitHandlers handlers = ExitHandlers::skip);
// Several at the same time, each in a child of its own and with so many seconds. In their order.
std::vector<ChildAnswer> ask_children(const std::vector<std::function<std::string()>>& functions, double seconds,
                                      ExitHandlers handlers = ExitHandlers::skip);

}  // namespace assay
