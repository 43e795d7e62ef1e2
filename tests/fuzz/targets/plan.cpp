// Plan files: expansion with the real catalogue, conversion to the form of run.json and back. A line after "---" is
// that of --set.
#include "harness/plan/plan.h"
#include "cli/catalogue.h"
#include "tests/fuzz/fuzz.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace assay::fuzz {

void plan(std::string_view input) {
  static const MemoryFile file(folder() / "plan.json");
  const std::size_t line = input.find("\n---\n");
  file.write(input.substr(0, line));
  PlanRequest request;
  request.targets = {file.path()};
  if (line != input.npos) request.sets.emplace_back(input.substr(line + 5));
  // The last byte, which is white space or a bracket in any plan, selects the device.
  request.device = input.ends_with('\n') ? DeviceKind::cuda : DeviceKind::cpu;
  const PlanLimits limits{500, std::uint64_t{1} << 38, 8};
  Plan expanded;
  const std::string source = request.sets.empty() ? file.path() : "";
  if (!accepts(source, [&] { expanded = expand_plan(request, cli::catalogue(), limits); })) return;
  expect(expanded.cases.size() <= limits.max_cases, "more cases than allowed");
  for (const PlannedCase& planned : expanded.cases) {
    expect(planned.ranks >= 1, "a case without ranks");
    const Estimate& e = planned.estimate;
    for (const double value : {e.memory_bytes, e.bytes, e.flops, e.items, e.seconds, planned.estimated_seconds})
      expect(value >= 0 && std::isfinite(value), "an invalid estimate: " + planned.key);
    expect(e.memory_bytes * planned.ranks <= static_cast<double>(limits.memory_bytes),
           "a case that exceeds the memory");
  }
  const Json written = expanded.expanded();
  const std::string text = written.dump();
  const Plan again = plan_from_expanded(Json::parse(text), "run.json", cli::catalogue(), limits.cpus, request.device);
  expect(again.expanded() == written, "a plan that does not round-trip through run.json: " + text.substr(0, 400));
}

}  // namespace assay::fuzz
