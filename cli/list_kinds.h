// Models and the codes of the gate for `assay list`.
#pragma once

#include "harness/json/fwd.h"

#include <string>

namespace assay::cli {

// A file that cannot be used is an error if its kind is requested, else it is listed with the reason.
Json models_json(bool requested);
std::string models_text(bool requested);
Json codes_json(bool requested);
std::string codes_text(bool requested);

}  // namespace assay::cli
