// Where this program is, and how to start it again.
#pragma once

#include <filesystem>

namespace assay {

// The file of this program; configs and modules lie beside it.
std::filesystem::path program_file();
// The path that starts this program again: its own file, or the launcher of a package (cli/launcher.cpp).
std::filesystem::path program_command();

}  // namespace assay
