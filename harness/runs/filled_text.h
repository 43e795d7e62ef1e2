// Text that a file which people write must not leave empty.
#pragma once

#include "harness/json/json.h"

#include <optional>
#include <string>

namespace assay {

inline bool blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

// The text there; adds a problem if it is blank. Empty if there is none.
inline std::string filled_text(const std::optional<Cursor>& at) {
  const auto text = at ? at->text() : std::nullopt;
  if (text && blank(*text)) at->error("is empty");
  return text.value_or("");
}

}  // namespace assay
