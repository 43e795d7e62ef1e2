// Runs a query in a child process, since it loads large libraries that start threads.
#pragma once

#include <functional>
#include <string>

namespace assay {

// Calls `ask` in a child process and returns its result (up to 4 KiB); empty if it fails or exceeds the timeout.
std::string ask_in_child_process(int timeout_ms, const std::function<std::string()>& ask);

}  // namespace assay
