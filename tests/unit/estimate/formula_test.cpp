// Formulas beside the plan of Assay's own step, where both know the model and the layout.
#include "workloads/estimate/formula.h"

#include "harness/json/json.h"
#include "workloads/estimate/memory_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::estimate {
namespace {

HardwareSheet formula_gpu() {
  HardwareSheet sheet;
  sheet.name = "made-up";
  sheet.kind = "gpu";
  sheet.peak = {{"bf16", 1e14}};
  sheet.memory_bytes = 80000000000;
  return sheet;
}

TEST(Formula, IsNearThePlan) {
  const std::string models = std::string(ASSAY_SOURCE) + "/tests/models/";
  for (const std::string& model : {std::string("llama-8b"), std::string("gpt2-124m"), std::string("bert-large"),
                                   models + "mistral-7b/config.json", models + "qwen2-7b/config.json"})
    for (const char* precision : {"bf16", "f32"})
      for (const char* checkpointing : {"none", "selective", "full"})
        for (const int zero : {0, 1, 2, 3}) {
          const std::string set = fmt::format("micro_batch=4,seq=512,precision={},checkpointing={},dp={},zero={}",
                                              precision, checkpointing, zero > 0 ? 8 : 1, zero);
          MemoryEstimator planner(model);
          planner.set_hardware(formula_gpu());
          planner.set({set});
          const auto planned = static_cast<double>(planner.estimate().total());
          const FormulaEstimate formula({.model = model, .sets = {set}, .hardware = formula_gpu()});
          // With zero = 1 and 2 Assay keeps tables of learned positions whole.
          EXPECT_NEAR(formula.total() / planned, 1, zero == 0 ? 0.02 : zero == 3 ? 0.03 : 0.06) << model << " " << set;
        }
}

TEST(Formula, IsOnlyForWhatAssayCannotPlan) {
  const auto needed = [](const std::string& model, std::vector<std::string> sets = {}) {
    return needs_formula({.model = model, .sets = std::move(sets), .hardware = std::nullopt});
  };
  EXPECT_FALSE(needed("llama-8b", {"dp=8,zero=3,tp=1"}));
  EXPECT_TRUE(needed("llama-8b", {"tp=2"}));
  EXPECT_TRUE(needed("llama-8b", {"method=lora"}));
  EXPECT_FALSE(needed("resnet50", {"tp=2"}));
}

}  // namespace
}  // namespace assay::estimate
