// Files of language models, ours and Hugging Face's config.json: the parameters and the plan of what is accepted.
#include "harness/json/json.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/nn/step_plan.h"
#include "workloads/transformer/transformer.h"

#include <algorithm>

namespace assay::fuzz {

void model(std::string_view input) {
  static const MemoryFile file(folder() / "config.json");
  file.write(input);
  transformer::Config config;
  if (!accepts(file.path(), [&] { config = transformer::read_config(read_json(file.path()), file.path(), "model"); }))
    return;
  const auto made = transformer::make_transformer(config);
  std::int64_t parameters = 0;
  for (const nn::ParameterSpec& spec : made->parameters()) {
    expect(spec.count() > 0, "an empty parameter: " + spec.name);
    parameters += spec.count();
    expect(parameters > 0, "more parameters than can be counted");
  }
  nn::StepOptions options;
  options.batch = {1, std::min<std::int64_t>(8, config.window > 0 ? config.window : config.positions)};
  const std::int64_t widest = std::max({config.width, config.mlp_width, config.heads * config.head_dim});
  if (config.layers > 16 || widest > (1 << 16)) return;  // only to be quick
  const nn::MemoryPlan plan = nn::plan_memory(*made, options);
  expect(plan.gradients >= 4 * static_cast<std::uint64_t>(parameters), "fewer gradients than parameters");
}

}  // namespace assay::fuzz
