// Recipes: the committed ones can be read, and errors are reported with place and nearest name.
#include "workloads/training/recipe.h"
#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "tests/support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace assay::training {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RecipeFile : public testing::Test {
 protected:
  void SetUp() override { path_ = fs::temp_directory_path() / fmt::format("assay-recipe-{}.json", ::getpid()); }
  void TearDown() override { fs::remove(path_); }
  Recipe read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_recipe(path_);
  }
  std::string problem(const std::string& text) {
    return test::refusal([&] { read(text); });
  }
  fs::path path_;
};

TEST_F(RecipeFile, IsReadCompletely) {
  const Recipe recipe = read(R"({"schema": 1,
    "optimizer": {"name": "adamw", "beta2": 0.95, "weight_decay": 0.1, "clip": 1},
    "schedule": {"decay": "cosine", "base": 3e-3, "warmup_steps": 50, "total_steps": 1000, "end_factor": 0.1},
    "batch": {"micro_batch": 16, "accumulate": 2, "seq": 128}, "data": {"chains": 3, "label_noise": 0.05},
    "quality": {"target": {"loss_above_floor": 0.05}, "evaluate_every": 640, "evaluation_samples": 512,
                "max_samples": 40000}})");
  EXPECT_EQ(recipe.options.optimizer, ops::OptimizerKind::adamw);
  EXPECT_EQ(recipe.options.beta2, 0.95);
  EXPECT_EQ(recipe.options.max_norm, 1);
  EXPECT_EQ(recipe.schedule.decay, Decay::cosine);
  EXPECT_EQ(recipe.global_batch(), 32);
  EXPECT_EQ(recipe.data.chains, 3);
  EXPECT_EQ(recipe.data.label_noise, 50);
  ASSERT_TRUE(recipe.quality);
  EXPECT_EQ(recipe.quality->target.loss_above_floor, 0.05);
}

TEST_F(RecipeFile, AllErrorsAreReportedAtOnce) {
  const std::string told = problem(R"({"schema": 1, "optimiser": {},
    "optimizer": {"name": "sgd", "beta1": 0.9},
    "schedule": {"decay": "cosin", "base": 1},
    "batch": {"micro_batch": 0},
    "quality": {"target": {}, "evaluate_every": 3, "evaluation_samples": 4, "max_samples": 5}})");
  for (const char* part : {"/optimiser", "did you mean \"optimizer\"", "/optimizer/beta1", "/schedule/decay",
                           "\"cosine\"", "/batch/micro_batch", "/quality/target"})
    EXPECT_THAT(told, HasSubstr(part));
}

TEST_F(RecipeFile, CadenceIsAWholeNumberOfSteps) {
  EXPECT_THAT(problem(R"({"schema": 1, "optimizer": {"name": "sgd"}, "schedule": {"decay": "constant", "base": 1},
    "batch": {"micro_batch": 32},
    "quality": {"target": {"value": 1}, "evaluate_every": 40, "evaluation_samples": 50, "max_samples": 50}})"),
              testing::AllOf(HasSubstr("/quality/evaluate_every: must be a multiple of the global batch, 32"),
                             HasSubstr("/quality/evaluation_samples: must be a multiple of the micro-batch, 32")));
}

TEST(Recipes, EveryCommittedOneCanBeRead) {
  const std::vector<std::string> names = config_names("recipes");
  EXPECT_GE(names.size(), 3u);
  for (const std::string& name : names)
    EXPECT_NO_THROW(read_recipe(configs_dir() / "recipes" / (name + ".json"))) << name;
}

TEST(Recipes, AModelWithoutARecipeUsesItsFamilys) {
  EXPECT_EQ(find_recipe("of-my-own", "llama").model, "llama");
  EXPECT_EQ(find_recipe("gpt2-tiny", "transformer").model, "gpt2-tiny");
  EXPECT_THROW(find_recipe("of-my-own", "none"), UsageError);
}

}  // namespace
}  // namespace assay::training
