// Files that may be compressed with gzip, as a stream of text.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace assay::kineto {

// Appends the next part of a text; false at its end.
using Source = std::function<bool(std::string& text)>;

// The text itself, or what it inflates to if it begins as gzip does. The source throws UsageError "FILE: ..." where a
// compressed text is damaged or cut off.
Source inflated(Source bytes, const std::string& file);

// A compressed copy of `from`. Throws Error.
void compress(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace assay::kineto
