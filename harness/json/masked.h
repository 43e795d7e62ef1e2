// Masks secrets in JSON (harness/core/secrets.h): in texts, as values of members that are named so, and in lists as the
// word after a flag that is.
#pragma once

#include "harness/json/fwd.h"

#include <string>
#include <string_view>

namespace assay {

// The document with its secrets masked.
Json masked(Json json);
// The same of a line of JSON, or of what is left of one; a line without secrets stays byte for byte.
std::string masked_line(std::string_view line);

}  // namespace assay
