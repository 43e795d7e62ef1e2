// The testbed's catalogue, linked instead of the program's.
#include "cli/catalogue.h"

#include "suites/collective/collective.h"
#include "tests/testbed/probe.h"

namespace assay::cli {

std::span<const Family> catalogue() {
  static const std::vector<Family> families = {probe_family(), collective_family()};
  return families;
}

}  // namespace assay::cli
