// The version and build id of this binary: run.json and `assay --version` show them, and the channel compares them.
#pragma once

#include <string_view>

namespace assay {

struct BuildInfo {
  std::string_view version;     // "0.1.0+g1a2b3c4d5" or "1.2.0-3-g1a2b3c4d5"; ends in "-dirty" if files were changed
  std::string_view commit;      // full hash; empty outside a git checkout
  bool dirty;                   // tracked files differed from the commit
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
  std::string_view flags;       // compiler flags of every source, without the instruction sets of single files
};

// Updated at every build, not only when CMake runs.
const BuildInfo& build_info();

}  // namespace assay
