// Questions that are asked in a process of their own, since asking means to load large libraries that start threads.
#pragma once

#include <functional>
#include <string>

namespace assay {

// What `ask` returns (up to 4 KiB), called in a child of this process; empty where it fails or takes longer than that.
std::string ask_in_a_process(int patience_ms, const std::function<std::string()>& ask);

}  // namespace assay
