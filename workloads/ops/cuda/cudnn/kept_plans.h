// Compiled plans of cuDNN in the cache of algorithms: to load one takes milliseconds, to compile it half a second or
// more.
#pragma once

#include <string>
#include <string_view>

namespace assay::ops::cudnn {

// Plans are files in algorithms/plans of the folder in ASSAY_CACHE; without one, or with kernels by heuristics, none is
// kept or read. `key` names all that a plan is valid for: the versions of cuDNN and driver, the GPU, and the graph; if
// it is empty, nothing is kept. A plan that cannot be written is not kept.
void keep_plan(const std::string& key, const std::string& name, std::string_view plan);
// Empty if there is none for exactly this key and name.
std::string read_kept_plan(const std::string& key, const std::string& name);

}  // namespace assay::ops::cudnn
