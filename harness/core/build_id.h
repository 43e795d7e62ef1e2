// The linker's fingerprint of this program. It differs between builds of one commit if compiler, flags or edits differ.
#pragma once

#include <string>

namespace assay {

// Hexadecimal; empty if the linker wrote none.
const std::string& build_id();

}  // namespace assay
