// Runs a query in a child process, since it loads large libraries that start threads.
#pragma once

#include <functional>
#include <string>

namespace assay {

// What `ask` returns (up to 4 KiB), called in a child process; empty if it fails or takes longer than the timeout.
std::string ask_in_child_process(int timeout_ms, const std::function<std::string()>& ask);

}  // namespace assay
