// Families and their parameters, as `assay list` shows them.
#pragma once

#include "harness/json/fwd.h"
#include "harness/plan/family.h"

#include <span>
#include <string>

namespace assay {

Json families_json(std::span<const Family> families);
std::string families_text(std::span<const Family> families);

}  // namespace assay
