// The catalogue: an explicit table of all families.
#pragma once

#include "harness/plan/family.h"

#include <span>
#include <string>
#include <vector>

namespace assay::cli {

// In the order of `assay list`; built on the first call.
std::span<const Family> catalogue();

inline std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : catalogue()) names.push_back(family.name);
  return names;
}

}  // namespace assay::cli
