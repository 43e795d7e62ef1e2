// The memory of PyTorch's step: torch's own figures (tests/architectures/torch.json), the caching allocator's rules.
#include "workloads/planning/torch.h"
#include "harness/core/words.h"
#include "tests/support/published_models.h"
#include "workloads/planning/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace assay::planning {
namespace {

constexpr double torch_mib = 1 << 20;

Recompute recompute_of(const std::string& word) {
  return word == "full" ? Recompute::full : word == "selective" ? Recompute::selective : Recompute::none;
}

TEST(TorchMemory, IsWhatTorchCounts) {
  const Json cases = read_json(ASSAY_SOURCE "/tests/architectures/torch.json");
  ASSERT_GE(cases.size(), 24U);
  for (const Json& each : cases) {
    const auto model = architecture::read_architecture(each.at("config"), "torch.json", "model");
    const Step step{.micro_batch = each.at("micro_batch"),
                    .seq = each.at("seq"),
                    .precision = from_word<Precision>(each.at("precision").get<std::string>()).value(),
                    .recompute = recompute_of(each.at("recompute")),
                    .method = from_word<Method>(each.at("method").get<std::string>()).value()};
    EXPECT_EQ(torch_problem(model, step, {}), std::nullopt) << each.dump();
    const Layout layout{.dp = each.at("ranks"), .zero = each.at("ranks") > 1 ? 3 : 0};
    const double counted = each.at("tensor_bytes");
    EXPECT_NEAR(torch_memory(model, step, layout).tensors / counted, 1, 0.03) << each.dump();
  }
}

TEST(TorchMemory, GrowsWithTheStepAndNamesItsParts) {
  const auto llama = test::published_architecture("llama-3.2-3b");
  const Step step{.micro_batch = 1, .seq = 1024};
  const TorchMemory one = torch_memory(llama, step, {});
  double sum = 0;
  for (const double part : one.uses) sum += part;
  EXPECT_NEAR(sum, one.tensors, 1);
  EXPECT_GE(one.reserved, one.tensors);
  EXPECT_EQ(one.uses[static_cast<std::size_t>(Use::weights)], 2.0 * 3212749824);
  EXPECT_EQ(one.uses[static_cast<std::size_t>(Use::optimizer)], 4.0 * 3212749824);
  Step more = step;
  more.micro_batch = 2;
  const TorchMemory two = torch_memory(llama, more, {});
  EXPECT_NEAR(two.kept / one.kept, 2, 0.01);
  more.recompute = Recompute::full;
  EXPECT_LT(torch_memory(llama, more, {}).kept, two.kept / 5);
  more = step;
  more.seq = 2048;
  EXPECT_NEAR(torch_memory(llama, more, {}).kept, two.kept, 1);
  // DDP's buckets are a copy of the gradients; gradients that are summed up stay for the whole step.
  EXPECT_GE(torch_memory(llama, step, {.dp = 2}).tensors, one.tensors + 2.0 * 3212749824);
  more = step;
  more.accumulate = 4;
  EXPECT_GT(torch_memory(llama, more, {}).forward, one.forward);
  more = step;
  more.optimizer = Optimizer::sgd;
  EXPECT_LT(torch_memory(llama, more, {}).tensors, one.tensors);
  // FSDP2 keeps f32, and divides it.
  EXPECT_LT(torch_memory(llama, step, {.dp = 16, .zero = 3}).tensors, one.tensors);
}

// torchtitan's tables 1 and 3 of benchmarks/llama3_h100_202412_torchtitan.md, in GiB: Llama 3.1 8B in eager bf16, two
// sequences of 8,192 tokens, selective recomputation, on 8 and on 128 GPUs.
TEST(TorchMemory, IsNearWhatTorchtitanPublished) {
  const auto llama = test::published_architecture("llama-3.1-8b");
  const Step step{.micro_batch = 2, .seq = 8192, .recompute = Recompute::selective};
  const double bytes = 1 << 30;
  EXPECT_NEAR(torch_memory(llama, step, {.dp = 8, .zero = 3}).reserved / (82.4 * bytes), 1, 0.08);
  EXPECT_NEAR(torch_memory(llama, step, {.dp = 128, .zero = 3}).reserved / (67.0 * bytes), 1, 0.08);
}

TEST(TorchMemory, KeepsLessTheMoreIsComputedAgain) {
  const auto llama = test::published_architecture("llama-3.2-3b");
  Step step{.micro_batch = 2, .seq = 4096, .recompute = Recompute::full};
  const double full = torch_memory(llama, step, {}).kept;
  step.recompute = Recompute::selective;
  const double selective = torch_memory(llama, step, {}).kept;
  // Of each token and layer: the queries (3072), the values (1024), what attention gives (3072, a logarithm in f32 for
  // each of 24 heads), what the gate (8192) and the last product (3072) give.
  EXPECT_NEAR(selective - full, 8192.0 * 28 * (2 * (3072 + 1024 + 3072 + 8192 + 3072) + 4 * 24), 1);
  step.recompute = Recompute::none;
  EXPECT_GT(torch_memory(llama, step, {}).kept, selective);
}

TEST(TorchMemory, DividesAdaptersWithTheRest) {
  const auto llama = test::published_architecture("llama-3.2-3b");
  const Step step{.micro_batch = 1, .seq = 512, .method = Method::lora};
  const auto weights = [&](std::int64_t ranks) {
    return torch_memory(llama, step, {.dp = ranks, .zero = 3}).uses[static_cast<std::size_t>(Use::weights)];
  };
  EXPECT_NEAR(weights(2), 2 * weights(4), 1);
}

// Of tensors of these sizes, negative ones freed by their index.
double reserved_of(const std::vector<double>& sizes) {
  std::vector<Heap::Event> events;
  std::size_t made = 0;
  for (const double size : sizes)
    if (size > 0)
      events.push_back({made++, size});
    else
      events.push_back({static_cast<std::size_t>(-size), 0});
  return reserved_bytes(events);
}

TEST(CachingAllocator, HasSegmentsOfThreeKinds) {
  EXPECT_EQ(reserved_of({1}), 2 * torch_mib);
  EXPECT_EQ(reserved_of({1, torch_mib}), 2 * torch_mib);
  EXPECT_EQ(reserved_of({torch_mib, torch_mib, 1}), 4 * torch_mib);
  EXPECT_EQ(reserved_of({torch_mib + 1}), 20 * torch_mib);
  EXPECT_EQ(reserved_of({9 * torch_mib, 9 * torch_mib}), 20 * torch_mib);
  EXPECT_EQ(reserved_of({9 * torch_mib, 9 * torch_mib, 3 * torch_mib}), 40 * torch_mib);
  EXPECT_EQ(reserved_of({11 * torch_mib}), 12 * torch_mib);
  EXPECT_EQ(reserved_of({100 * torch_mib}), 100 * torch_mib);
}

TEST(CachingAllocator, HasSegmentsOfItsOwnForEachStream) {
  EXPECT_EQ(reserved_bytes({{0, 1, Stream::compute}, {0, 0, Stream::compute}, {1, 1, Stream::all_gather}}),
            4 * torch_mib);
  EXPECT_EQ(reserved_bytes({{0, 1, Stream::all_gather}, {0, 0, Stream::all_gather}, {1, 1, Stream::all_gather}}),
            2 * torch_mib);
}

TEST(CachingAllocator, TakesTheSmallestThatFitsAndJoinsNeighbours) {
  // 30 and 20 MiB are free: 18 MiB take the second, and 30 still fit the first.
  const std::vector<double> both = {5, 30 * torch_mib, 20 * torch_mib, -1, -2};
  auto taken = both;
  taken.insert(taken.end(), {18 * torch_mib, 30 * torch_mib});
  EXPECT_EQ(reserved_of(taken), 52 * torch_mib);
  taken.push_back(20 * torch_mib);  // 2 MiB of it are left
  EXPECT_EQ(reserved_of(taken), 72 * torch_mib);
  // A block of 1 MiB and more is split off; what is split joins again when both halves are free.
  EXPECT_EQ(reserved_of({5, 40 * torch_mib, -1, 10 * torch_mib, 30 * torch_mib}), 42 * torch_mib);
  EXPECT_EQ(reserved_of({5, 40 * torch_mib, -1, 10 * torch_mib, 30 * torch_mib, -2, -3, 40 * torch_mib}),
            42 * torch_mib);
}

TEST(TorchMemory, RefusesWhatItDoesNotKnow) {
  const auto llama = test::published_architecture("llama-3.2-3b");
  const auto problem = [&](const Step& step, const Layout& layout) {
    return torch_problem(llama, step, layout).value_or("none");
  };
  EXPECT_EQ(problem({.seq = 8}, {}), "none");
  EXPECT_EQ(problem({.seq = 8, .method = Method::lora}, {.dp = 4}), "none");
  EXPECT_THAT(problem({.seq = 8, .optimizer = Optimizer::adamw_8bit}, {}), testing::HasSubstr("use optimizer=adamw"));
  EXPECT_THAT(problem({.seq = 8}, {.pp = 2}), testing::HasSubstr("use pp=1"));
  EXPECT_THAT(torch_problem(test::published_architecture("mixtral-8x7b"), {.seq = 8}, {}).value_or(""),
              testing::HasSubstr("use engine=assay"));
}

}  // namespace
}  // namespace assay::planning
