// The linker's fingerprint of this program: two builds of one commit with other compilers, flags or edits differ in it.
#pragma once

#include <string>

namespace assay {

// Hexadecimal; empty where the linker wrote none.
const std::string& build_id();

}  // namespace assay
