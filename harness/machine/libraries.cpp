// Installed libraries, by their file names.
#include "harness/machine/libraries.h"

#include "harness/core/module.h"
#include "harness/core/program.h"
#include "harness/process/ask.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>

namespace assay {
namespace {

// The version after "-r" in the name: "0.3.21" of libopenblasp-r0.3.21.so.
std::string openblas_version(const std::string& name) {
  const auto start = name.find("-r"), end = name.rfind(".so");
  if (!name.starts_with("libopenblas") || start == std::string::npos || end == std::string::npos || end < start)
    return "";
  return name.substr(start + 2, end - start - 2);
}

}  // namespace

std::map<std::string, std::string> cuda_libraries() {
  const std::string module = Module::find("cuda");
  if (module.empty()) return {};
  constexpr double timeout = 20;  // gigabytes, perhaps from a slow disk
  const auto ask = [&] {
    void* const handle = dlopen(module.c_str(), RTLD_LAZY | RTLD_LOCAL);
    std::string text;
    // Found through the module: a handle's search covers its dependencies. 22807 is NCCL 2.28.7.
    const auto add = [&](const char* name, std::size_t version) {
      if (version > 0) text += fmt::format("{} {}.{}.{}\n", name, version / 10000, version / 100 % 100, version % 100);
    };
    const auto find = [&](const char* symbol) { return handle ? dlsym(handle, symbol) : nullptr; };
    if (void* const symbol = find("cublasLtGetVersion")) add("cublaslt", reinterpret_cast<std::size_t (*)()>(symbol)());
    if (void* const symbol = find("cudnnGetVersion")) add("cudnn", reinterpret_cast<std::size_t (*)()>(symbol)());
    int version = 0;
    if (void* const symbol = find("ncclGetVersion"); symbol && reinterpret_cast<int (*)(int*)>(symbol)(&version) == 0)
      add("nccl", static_cast<std::size_t>(version));
    return text;
  };
  std::map<std::string, std::string> found;
  for (const std::string& line : lines(ask_child(ask, timeout).text.value_or("")))
    if (const auto pair = words(line); pair.size() == 2) found[pair[0]] = pair[1];
  return found;
}

std::map<std::string, std::string> libraries(const Root& root) {
  auto found = built_with();
  found["libc"] = gnu_get_libc_version();
  const std::string packaged = (program_file().parent_path().parent_path() / "lib").string().substr(1);
  for (const std::string& lib :
       {std::string("usr/lib"), std::string("usr/lib64"), std::string("usr/local/lib"), packaged}) {
    auto folders = std::vector<std::string>{lib};
    for (const auto& triplet : root.list(lib))
      if (triplet.find("-linux-gnu") != std::string::npos) folders.push_back(lib + "/" + triplet);
    for (std::size_t i = folders.size(); i-- > 0;)
      for (const auto& flavour : root.list(folders[i]))
        if (flavour.starts_with("openblas-") || flavour.starts_with("blis-"))
          folders.push_back(folders[i] + "/" + flavour);
    for (const auto& folder : folders)
      for (const auto& name : root.list(folder)) {
        if (const auto version = openblas_version(name); !version.empty()) found["openblas"] = version;
        if (name.starts_with("libblis") && name.find(".so.") != std::string::npos)
          found["blis"] = name.substr(name.find(".so.") + 4);
      }
  }
  return found;
}

}  // namespace assay
