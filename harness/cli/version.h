// What this binary calls itself.
#pragma once

#include <string_view>

namespace assay::cli {

// From git: v1.2.3, or 0.1.0+g1a2b3c4-dirty between tags.
std::string_view version();

}  // namespace assay::cli
