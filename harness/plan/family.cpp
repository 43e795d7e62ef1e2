#include "harness/plan/family.h"

namespace assay {

const Family* find_family(std::span<const Family> families, std::string_view name) {
  for (const Family& family : families)
    if (family.name == name) return &family;
  return nullptr;
}

}  // namespace assay
