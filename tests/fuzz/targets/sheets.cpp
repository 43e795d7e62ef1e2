// Files of settings that a user may name or change, and what acceptances and gates keep: sheets of hardware, levels of
// an acceptance, rules of a diagnosis, published figures, reference points, states, past gates. Every input goes to all
// readers.
#include "harness/fitness/accept/level.h"
#include "harness/fitness/accept/state.h"
#include "harness/fitness/gate/catalogue.h"
#include "harness/fitness/gate/past.h"
#include "harness/json/members.h"
#include "harness/machine/hardware.h"
#include "reports/diagnosis/diagnosis.h"
#include "reports/references/published.h"
#include "reports/sizing/published.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/training/recipe.h"
#include "workloads/training/scoring.h"

#include <cmath>

namespace assay::fuzz {

void sheets(std::string_view input) {
  static const MemoryFile file(folder() / "sheets" / "sheet.json");
  static const MemoryFile state(folder() / "acceptance" / accept::state_file);
  file.write(input);
  const std::string& path = file.path();
  HardwareSheet sheet;
  if (accepts(path, [&] { sheet = read_hardware(path); }))
    for (const auto& [dtype, peak] : sheet.peak) expect(peak > 0 && std::isfinite(peak), "an invalid peak of " + dtype);
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    accept::Level level;
    if (accepts(path, [&] { level = accept::read_level(path, device); }))
      expect(level.pair_share > 0 && level.pair_share <= 1, "an invalid share of the median pair");
  }
  std::vector<report::Rule> rules;
  if (accepts(path, [&] { rules = report::load_rules(path); }))
    for (const report::Rule& rule : rules) expect(!rule.id.empty() && !rule.says.empty(), "a rule that says nothing");
  accepts(path, [&] { (void)report::sizing::read_published(path); });
  accepts(path, [&] { (void)report::load_published(folder() / "sheets"); });
  accepts(path, [&] { (void)training::read_convergence(path); });
  accepts(path, [&] { (void)training::read_recipe(path); });
  accepts(path, [&] { (void)gate::load_catalogue(path); });

  state.write(input);
  accept::State read;
  if (accepts("--resume ", [&] { read = accept::read_state(folder() / "acceptance"); })) {
    const std::string text = dump_line(json_of(read));
    expect(dump_line(json_of(read_text<accept::State>(text))) == text, "a state that does not round-trip");
  }
  gate::Past past;
  accepts("cannot read " + path, [&] { past = gate::read_past(path, 1795435200); });  // 2026-11-23
  expect(past.suspect + past.drain <= input.size(), "more gates than lines");
}

}  // namespace assay::fuzz
