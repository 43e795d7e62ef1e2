// Asks the real cuDNN for plans of every graph of every shipped model, in every precision and direction, for GPUs that
// this machine need not have: its heuristics and its compiler work from a description of the GPU (devices/, or what
// tests/gpu/check has brought home). The driver is a stand-in (driver.cpp), CUDA's runtime another (runtime.cpp).
#include "harness/core/files.h"
#include "tests/planning/runtime.h"
#include "tests/support/temporary_folder.h"
#include "workloads/estimate/models.h"
#include "workloads/nn/planning_backend.h"
#include "workloads/nn/step_plan.h"
#include "workloads/ops/cuda/attention_candidates.h"
#include "workloads/ops/cuda/conv_choice.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace assay::ops {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// How many plans there are, and why there is none.
struct Answer {
  std::size_t plans = 0;
  std::string why_none;
};
using Question = std::function<Answer()>;

Answer answer(const cudnn::Plans& plans) { return {plans.plans.size(), plans.why_not}; }

// What to ask cuDNN for, by the graph's key. One plan each is enough.
class Questions {
 public:
  template <typename Op>
  void add(const typename Op::Desc& d) {
    using Desc = typename Op::Desc;
    if constexpr (std::is_same_v<Desc, ConvDesc>) {
      const auto pass = std::is_same_v<Op, ConvForward>        ? cudnn::ConvolutionPass::forward
                        : std::is_same_v<Op, ConvBackwardData> ? cudnn::ConvolutionPass::backward_data
                                                               : cudnn::ConvolutionPass::backward_weights;
      all_.emplace(key_of(convolution_graph_of(d, pass)), [d, pass] {
        const ConvCandidates found = conv_candidates(d, pass, {}, 1);
        return Answer{found.choices.size(), found.why_none};
      });
    } else if constexpr (std::is_same_v<Desc, AttentionDesc>) {
      const bool backward = std::is_same_v<Op, AttentionBackward>;
      if (!cudnn_refusal(d).empty()) return;  // our own kernels do it
      all_.emplace(key_of(attention_graph_of(d, backward)), [d, backward] {
        Answer found;
        found.plans = attention_candidates(d, backward, found.why_none).size();
        return found;
      });
    } else if constexpr (std::is_same_v<Op, BatchNormForward>) {
      const auto graph = cudnn::batch_norm_graph_of(d);
      all_.emplace(key_of(graph), [graph] { return answer(cudnn::batch_norm_forward_plans(graph, {.max_plans = 1})); });
    } else if constexpr (std::is_same_v<Op, BatchNormBackward>) {
      const auto graph = cudnn::batch_norm_gradient_graph_of(d);
      if (!graph) return;
      all_.emplace(key_of(*graph),
                   [graph] { return answer(cudnn::batch_norm_backward_plans(*graph, {.max_plans = 1})); });
    } else if constexpr (std::is_same_v<Op, PoolForward>) {
      if (d.kind != PoolKind::average) return;
      all_.emplace(key_of(d), [d] { return answer(cudnn::average_pool_plans(d, {.max_plans = 1})); });
    }
  }
  const std::map<std::string, Question>& all() const { return all_; }

 private:
  std::map<std::string, Question> all_;
};

// Makes ops that only have sizes, and remembers what they were made for.
class AskingBackend final : public Backend {
 public:
  explicit AskingBackend(Questions& questions)
      : Backend([&questions,
                 planning = nn::make_planning_backend(DeviceKind::cuda)]<typename Op>(const typename Op::Desc& desc) {
          questions.add<Op>(desc);
          return planning->make<Op>(desc);
        }) {}
  std::string name() const override { return "planning"; }
  std::string libraries() const override { return "none"; }
};

void add_model(const std::filesystem::path& file, const std::string& precision, Questions& questions) {
  const estimate::LoadedModel loaded = estimate::load_model(file);
  const bool images = !loaded.language;
  nn::StepOptions options;
  options.precision = nn::precision_from(precision);
  options.optimizer = images ? OptimizerKind::sgd : OptimizerKind::adamw;
  options.batch.samples = images ? 256 : 8;
  const std::int64_t most = loaded.model->input().max_seq();
  if (!images) options.batch.seq = most > 0 ? std::min<std::int64_t>(2048, most) : 2048;
  const nn::StepPlan plan(*loaded.model, options, {DeviceKind::cuda, std::uint64_t{80} << 30},
                          std::make_shared<AskingBackend>(questions));
}

std::filesystem::path models() { return std::filesystem::path(ASSAY_SOURCE) / "configs/models"; }

// Where cuDNN 9.19 has nothing, and our own kernel or another form does the work.
struct Listed {
  std::string gpu, graph, why;  // parts of the GPU's name, of the graph's key, and of the reason
};
const std::vector<Listed>& listed() {
  static const std::vector<Listed> all = {};
  return all;
}

bool is_listed(const std::string& gpu, const std::string& graph, const std::string& why) {
  return std::any_of(listed().begin(), listed().end(), [&](const Listed& one) {
    return gpu.find(one.gpu) != std::string::npos && graph.find(one.graph) != std::string::npos &&
           why.find(one.why) != std::string::npos;
  });
}

class Planning : public testing::Test {
 protected:
  void SetUp() override {
    const char* file = std::getenv("ASSAY_PLAN_FOR");
    if (!file) GTEST_SKIP() << "ASSAY_PLAN_FOR names no description of a GPU";
    const std::string description = read_whole(file, 1 << 20);
    gpu_ = planning::describe(description);
    cudnn::plan_for(description);
  }
  std::string gpu_;
};

TEST_F(Planning, EveryGraphHasAPlanOrAListedReason) {
  const bool whole = std::getenv("ASSAY_PLANNING_ALL") != nullptr;
  Questions questions;
  for (const auto& entry : std::filesystem::directory_iterator(models())) {
    const bool tiny = entry.path().string().find("-tiny") != std::string::npos;
    for (const std::string precision : {"f32", "tf32", "bf16", "fp16", "fp8"}) {
      if (precision == "fp8" && entry.path().string().find("resnet") != std::string::npos) continue;
      const bool usual = precision == "bf16" || precision == "f32";
      if (whole || (tiny && usual)) add_model(entry.path(), precision, questions);
    }
  }
  ASSERT_THAT(questions.all(), SizeIs(testing::Gt(whole ? 300u : 40u)));
  std::map<std::string, int> kinds;
  std::size_t without = 0;
  for (const auto& [key, ask] : questions.all()) {
    const Answer found = ask();
    ++kinds[key.substr(0, key.find(' '))];
    if (found.plans > 0) continue;
    ++without;
    EXPECT_NE(found.why_none, "") << key;
    EXPECT_TRUE(is_listed(gpu_, key, found.why_none)) << gpu_ << ": " << key << ": " << found.why_none;
  }
  for (const std::string kind : {"convolution", "attention", "batch_norm", "batch_norm_gradient", "pool"})
    EXPECT_GT(kinds[kind], 0) << kind;
  std::printf("%s on %s: %zu graphs, %zu of them without a plan\n", cudnn::version().c_str(), gpu_.c_str(),
              questions.all().size(), without);
}

// A graph whose plans are compiled at run time.
cudnn::AttentionGraph attention() {
  cudnn::AttentionGraph graph;
  graph.batch = 2, graph.seq = 256, graph.heads = graph.kv_heads = 4, graph.head_dim = 64;
  graph.q_stride = graph.k_stride = graph.v_stride = 768;
  return graph;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code absent;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, absent))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

class KeptPlans : public Planning {
 protected:
  KeptPlans() { setenv("ASSAY_CACHE", folder_.path().c_str(), 1); }
  ~KeptPlans() override { unsetenv("ASSAY_CACHE"); }

  std::shared_ptr<cudnn::Plan> planned(const std::string& name = {}) {
    const cudnn::Plans found = cudnn::attention_plans(attention(), {.max_plans = 1, .name = name});
    return found.plans.empty() ? nullptr : found.plans[0];
  }
  test::TemporaryFolder folder_;
};

TEST_F(KeptPlans, AreReadByName) {
  const auto plan = planned();
  ASSERT_TRUE(plan);
  EXPECT_THAT(files_in(folder_.path()), SizeIs(0));
  plan->keep();
  ASSERT_THAT(files_in(folder_.path()), SizeIs(1));
  const std::string kept = read_whole(files_in(folder_.path())[0], 64 << 20);
  EXPECT_THAT(kept, HasSubstr(plan->name()));
  EXPECT_GT(kept.size(), 10'000u);  // with the code that cuDNN compiled
  const auto read = planned(plan->name());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name(), plan->name());
  EXPECT_EQ(read->workspace_bytes(), plan->workspace_bytes());
  EXPECT_FALSE(planned("a plan that does not exist"));
}

TEST_F(KeptPlans, ThatAreBrokenAreCompiledAgain) {
  const auto plan = planned();
  ASSERT_TRUE(plan);
  plan->keep();
  const auto file = files_in(folder_.path()).at(0);
  const std::string kept = read_whole(file, 64 << 20);
  for (const std::string& broken : {kept.substr(0, kept.size() / 2), std::string("nonsense"), std::string()}) {
    replace_file(file, broken);
    const auto again = planned(plan->name());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->name(), plan->name());
  }
}

TEST_F(KeptPlans, ThatCannotBeBuiltAreBounded) {
  const cudnn::Plans none =
      cudnn::attention_plans(attention(), {.workspace_bytes = 0, .max_plans = 9, .max_failures = 0});
  EXPECT_THAT(none.plans, SizeIs(0));
  EXPECT_THAT(none.why_not, HasSubstr("has no engine for it"));
}

TEST_F(Planning, AReasonIsOneLine) {
  cudnn::AttentionGraph graph = attention();
  graph.head_dim = 7;
  const cudnn::Plans none = cudnn::attention_plans(graph, {});
  ASSERT_THAT(none.plans, SizeIs(0));
  EXPECT_THAT(none.why_not, HasSubstr("cuDNN 9."));
  EXPECT_EQ(none.why_not.find('\n'), std::string::npos) << none.why_not;
}

}  // namespace
}  // namespace assay::ops
