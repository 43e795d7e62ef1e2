// The JSON type that the project uses: keys keep their order, so that files are stable.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace assay {
using Json = nlohmann::ordered_json;
}
