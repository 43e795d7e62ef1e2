#include "harness/core/module.h"

#include "harness/core/error.h"
#include "harness/core/program.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace assay {

namespace fs = std::filesystem;

std::string Module::find(std::string_view name) {
  const std::string file = fmt::format("libassay-{}.so", name);
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("ASSAY_MODULE_PATH")) folders.emplace_back(path);
  std::error_code none;
  const fs::path self = program_file();
  folders.push_back(self.parent_path());
  folders.push_back(self.parent_path().parent_path() / "lib" / "assay");
  for (const fs::path& folder : folders)
    if (fs::exists(folder / file, none)) return (folder / file).string();
  return {};
}

namespace {

// How to install the libraries that a module depends on.
std::string_view remedy(std::string_view module) {
  if (module == "cuda")
    return "; install the CUDA toolkit's libraries, cuDNN and NCCL, or add their folder to LD_LIBRARY_PATH";
  if (module == "mpi") return "; install openmpi-bin";
  return "";
}

}  // namespace

Module Module::load(std::string_view name) {
  const std::string path = find(name);
  if (path.empty())
    throw Error(
        fmt::format("module libassay-{}.so is not next to the binary: this build was made without {}", name, name));
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw Error(fmt::format("module {} cannot be loaded: {}{}", path, dlerror(), remedy(name)));
  return Module(path, handle);
}

void* Module::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (!address) throw Error(fmt::format("module {} has no symbol {}: it is from another version", path_, name));
  return address;
}

}  // namespace assay
