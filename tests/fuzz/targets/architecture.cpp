// Files of architectures that are only planned for: what is accepted has parameters, and memory of training and
// serving.
#include "harness/json/json.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/architecture/read.h"
#include "workloads/planning/memory.h"
#include "workloads/planning/serving.h"
#include "workloads/planning/traffic.h"

#include <algorithm>
#include <cmath>

namespace assay::fuzz {

void architecture(std::string_view input) {
  static const MemoryFile file(folder() / "architecture.json");
  file.write(input);
  architecture::Architecture model;
  if (!accepts(file.path(),
               [&] { model = assay::architecture::read_architecture(read_json(file.path()), file.path(), "model"); }))
    return;
  expect(model.parameters() > 0, "no parameters, or more than can be counted");
  expect(model.active_parameters() > 0 && model.active_parameters() <= model.parameters(), "active parameters");
  for (const planning::Layout& layout : {planning::Layout(), planning::Layout{.dp = 4, .tp = 2, .pp = 2, .ep = 2}}) {
    const planning::Step step{.seq = std::min<std::int64_t>(64, model.positions), .method = planning::Method::qlora};
    if (planning::problem_of(model, step, layout)) continue;
    const double bytes = planning::largest(planning::memory_of(model, step, layout, 0));
    expect(std::isfinite(bytes) && bytes > 0, "no memory of training");
    for (const planning::Traffic& each : planning::traffic_of(model, step, layout, 8))
      expect(std::isfinite(each.bytes), "traffic without end");
  }
  const planning::Serving serving{.context = std::min<std::int64_t>(64, model.positions)};
  if (planning::problem_of(model, serving)) return;
  const double bytes = planning::memory_of(model, serving).total();
  expect(std::isfinite(bytes) && bytes > 0, "no memory of serving");
}

}  // namespace assay::fuzz
