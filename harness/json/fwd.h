// The project's JSON type. Keys keep their order, so that files are stable.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace assay {
using Json = nlohmann::ordered_json;
}
