// Lists of CPUs as the kernel writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// "0-3,8" as 0, 1, 2, 3, 8; skips parts that are not numbers.
std::vector<int> cpu_list(std::string_view text);
// The reverse; each CPU once, ascending.
std::string cpu_list_text(std::vector<int> cpus);

}  // namespace assay
