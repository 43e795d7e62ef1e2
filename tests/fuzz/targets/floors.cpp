// Floors files.
#include "reports/acceptance/acceptance.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

namespace assay::fuzz {

void floors(std::string_view input) {
  static const MemoryFile file(folder() / "floors.json");
  file.write(input);
  report::Floors read;
  if (!accepts(file.path(), [&] { read = report::load_floors(file.path()); })) return;
  expect(!read.floors.empty(), "a file without floors");
  for (const report::Floor& floor : read.floors)
    expect(!floor.key.empty() && !floor.metric.empty() && !floor.unit.empty() && !floor.source.empty() &&
               floor.limit >= 0 && std::isfinite(floor.limit),
           "an invalid floor: " + floor.pointer);
}

}  // namespace assay::fuzz
