// Floors files.
#include "harness/fitness/floors/check.h"
#include "tests/fuzz/fuzz.h"

#include <cmath>

namespace assay::fuzz {

void floors(std::string_view input) {
  static const MemoryFile file(folder() / "floors.json");
  file.write(input);
  fitness::Floors read;
  if (!accepts(file.path(), [&] { read = fitness::load_floors(file.path()); })) return;
  expect(!read.floors.empty(), "a file without floors");
  for (const fitness::Floor& floor : read.floors)
    expect(!floor.key.empty() && !floor.metric.empty() && !floor.unit.empty() && !floor.source.empty() &&
               floor.limit >= 0 && std::isfinite(floor.limit),
           "an invalid floor: " + floor.pointer);
  expect(fitness::find_floors(file.path()).floors.size() == read.floors.size(), "other floors by the file's name");
}

}  // namespace assay::fuzz
