// Versions of the libraries that this build uses, known without loading them.
#pragma once

#include "harness/machine/root.h"

#include <map>
#include <string>

namespace assay {

// Versions of the libraries that CMake found when this build was configured ("onednn": "3.2.0").
const std::map<std::string, std::string>& built_with();
// The same plus what is installed here: the C library, OpenBLAS and BLIS, by their file names.
std::map<std::string, std::string> libraries(const Root& root = Root());
// Those that the CUDA module finds on this machine (cublaslt, cudnn, nccl), by loading them in a child process, which
// takes about a second; empty without the module, or if they cannot be loaded.
std::map<std::string, std::string> cuda_libraries();

}  // namespace assay
