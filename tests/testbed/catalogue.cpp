// The testbed's catalogue: it takes the place of the program's own at link time.
#include "cli/catalogue.h"

#include "suites/collective/collective.h"
#include "tests/testbed/probe.h"

namespace assay::cli {

std::span<const Family> catalogue() {
  static const std::vector<Family> families = {probe_family(), collective_family()};
  return families;
}

}  // namespace assay::cli
