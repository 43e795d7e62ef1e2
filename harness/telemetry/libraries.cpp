// Libraries as installed, by the names of their files.
#include "harness/telemetry/libraries.h"

#include <gnu/libc-version.h>

namespace assay {
namespace {

// "0.3.21" of libopenblasp-r0.3.21.so; the version after "-r".
std::string openblas_version(const std::string& name) {
  const auto start = name.find("-r"), end = name.rfind(".so");
  if (!name.starts_with("libopenblas") || start == std::string::npos || end == std::string::npos || end < start)
    return "";
  return name.substr(start + 2, end - start - 2);
}

}  // namespace

std::map<std::string, std::string> libraries(const Root& root) {
  auto found = built_with();
  found["libc"] = gnu_get_libc_version();
  for (const std::string lib : {"usr/lib", "usr/lib64", "usr/local/lib"}) {
    auto folders = std::vector<std::string>{lib};
    for (const auto& triplet : root.list(lib))
      if (triplet.find("-linux-gnu") != std::string::npos) {
        folders.push_back(lib + "/" + triplet);
        for (const auto& flavour : root.list(folders.back()))
          if (flavour.starts_with("openblas")) folders.push_back(lib + "/" + triplet + "/" + flavour);
      }
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
