// A gate of root's relies on nothing that an ordinary user can plant: variables, folders, files.
#pragma once

#include "harness/process/process.h"

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace assay::gate {

// For root's process: starts this program again, with the arguments `words` (the program's name first), unless its
// environment is one of trusted_variables() already. Returns a remark on what the loader was told before; may be empty.
std::string leave_environment(const std::vector<std::string>& words);

// For root's process: throws UsageError if another user could change the configuration, ASSAY_MODULE_PATH, ASSAY_ROOT
// or the file of `floors` (as of --floors; empty: none), or one of the `files`, by the flags that name them.
void refuse_untrusted(const std::string& floors, std::initializer_list<std::pair<const char*, std::string>> files = {});

// What tests that compute get.
struct Computing {
  Variables variables = {};
  std::string remark = {};  // why they compute as root; empty: they do not, or nobody here is root
};
// For root's process: that they become nobody's where nobody can read all they need, with a cache of their own in
// cache_folder(), or in `workspace` if others could change that. `gpus`: they open GPUs.
Computing computing_for(const std::filesystem::path& workspace, bool gpus);

}  // namespace assay::gate
