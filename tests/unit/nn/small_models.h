// Models small enough for the reference backend in f64, one of each kind, and batches for them.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/core/rng.h"
#include "tests/oracle/oracle.h"
#include "workloads/nn/training_step.h"
#include "workloads/resnet/resnet.h"
#include "workloads/transformer/transformer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace assay::nn::test {

inline transformer::Config gpt2() {
  transformer::Config c;
  c.name = "gpt2";
  c.vocabulary = 11;
  c.positions = 8;
  c.layers = 2;
  c.width = 12;
  c.heads = c.kv_heads = 3;
  c.head_dim = 4;
  c.mlp_width = 20;
  c.scaled_residual = true;
  c.deviation = 0.3;
  return c;
}

inline transformer::Config llama() {
  transformer::Config c = gpt2();
  c.name = c.family = "llama";
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 6;
  c.norm = ops::NormKind::rms;
  c.position = transformer::Position::rotary;
  c.mlp = ops::ActivationKind::silu_gate;
  c.bias = c.tied = c.scaled_residual = false;
  return c;
}

inline transformer::Config qwen2() {
  transformer::Config c = llama();
  c.name = "qwen2";
  c.qkv_bias = true;
  return c;
}

inline transformer::Config bert() {
  transformer::Config c = gpt2();
  c.name = "bert";
  c.post_norm = true;
  c.mlp = ops::ActivationKind::gelu_erf;
  c.causal = c.scaled_residual = false;
  c.padding_mask = true;
  c.token_types = 2;
  c.head_transform = true;
  return c;
}

// Sizes in multiples of 16, which 8-bit products require.
inline transformer::Config widened(transformer::Config c) {
  c.width = 32;
  c.heads = 2;
  c.kv_heads = c.kv_heads < 3 ? 1 : 2;
  c.head_dim = 16;
  c.mlp_width = 48;
  return c;
}

inline resnet::Config resnet(resnet::BlockKind block) {
  resnet::Config c;
  c.name = "resnet";
  c.block = block;
  c.stages = {1, 2};
  c.width = 4;
  c.classes = 5;
  c.image = 16;
  c.small_stem = block == resnet::BlockKind::basic;
  return c;
}

inline std::unique_ptr<Model> model(const std::string& kind) {
  if (kind == "gpt2") return transformer::make_transformer(gpt2());
  if (kind == "llama") return transformer::make_transformer(llama());
  if (kind == "qwen2") return transformer::make_transformer(qwen2());
  if (kind == "bert") return transformer::make_transformer(bert());
  if (kind == "wide_gpt2") return transformer::make_transformer(widened(gpt2()));
  if (kind == "wide_llama") return transformer::make_transformer(widened(llama()));
  if (kind == "deep_llama" || kind == "deep_gpt2") {
    transformer::Config c = widened(kind == "deep_llama" ? llama() : gpt2());
    c.layers = 8;
    c.vocabulary = 16;
    return transformer::make_transformer(c);
  }
  if (kind == "wide_bert") return transformer::make_transformer(widened(bert()));
  return resnet::make_resnet(resnet(kind == "basic" ? resnet::BlockKind::basic : resnet::BlockKind::bottleneck));
}

inline StepOptions small_options(const std::string& kind, std::string_view precision = "f64") {
  StepOptions options;
  options.precision = precision_from(precision);
  const bool images = kind == "basic" || kind == "bottleneck";
  options.batch = {.samples = images ? 3 : 2, .seq = images ? 0 : kind.starts_with("wide_") ? 8 : 5};
  return options;
}

// A batch that depends only on `which`; some targets are ignored if tokens are the targets.
inline void fill(const Inputs& inputs, std::int64_t classes, std::uint64_t which) {
  const Rng rng(which, "batch");
  std::uint64_t at = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int32_t>(rng.below(at++, static_cast<std::uint64_t>(bound)));
  };
  for (std::int32_t& id : inputs.ids) id = below(classes);
  for (std::int32_t& type : inputs.type_ids) type = below(2);
  for (float& pixel : inputs.images) pixel = static_cast<float>(rng.normal(at++));
  for (std::int32_t& target : inputs.targets) target = below(classes);
  if (inputs.ids.size() > 2) inputs.targets[1 + which % 2] = -100;
  if (inputs.lengths.empty()) return;
  const std::size_t seq = inputs.ids.size() / inputs.lengths.size();
  for (std::size_t b = 0; b < inputs.lengths.size(); ++b) {
    inputs.lengths[b] = static_cast<std::int32_t>(b % 2 == 0 ? seq : seq - 2);
    for (auto t = static_cast<std::size_t>(inputs.lengths[b]); t < seq; ++t) inputs.targets[b * seq + t] = -100;
  }
}

inline std::int64_t classes_of(const std::string& kind) { return kind == "basic" || kind == "bottleneck" ? 5 : 11; }

// A step on the reference backend with its first batches, ready to run.
class SmallStep {
 public:
  SmallStep(const std::string& kind, const StepOptions& options, Communicator* comm = nullptr)
      : device_(make_device(DeviceKind::cpu, 0)),
        alone_(make_self_communicator()),
        step(*model(kind), options, *device_, ops::make_reference_backend(), comm ? *comm : *alone_) {
    step.allocate();
    step.initialise(1);
    const std::int64_t rank = comm ? comm->rank() : 0;
    for (std::int64_t m = 0; m < options.accumulate; ++m)
      fill(step.inputs(m), classes_of(kind), static_cast<std::uint64_t>(rank * options.accumulate + m));
  }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> alone_;

 public:
  TrainingStep step;
};

inline std::vector<double> losses(SmallStep& small, int steps, double rate = 1e-2) {
  std::vector<double> list;
  for (int i = 0; i < steps; ++i) list.push_back(small.step.step(rate).loss);
  return list;
}

// The state of a step on the CPU, part by part.
inline std::vector<std::vector<std::byte>> bytes(TrainingStep& step) {
  std::vector<std::vector<std::byte>> all;
  for (const StatePart& part : step.state()) {
    const auto* data = static_cast<const std::byte*>(part.data);
    all.emplace_back(data, data + part.bytes);
  }
  return all;
}

inline void restore(TrainingStep& step, const std::vector<std::vector<std::byte>>& saved) {
  const auto parts = step.state();
  ASSERT_EQ(parts.size(), saved.size());
  for (std::size_t i = 0; i < parts.size(); ++i) std::memcpy(parts[i].data, saved[i].data(), parts[i].bytes);
}

}  // namespace assay::nn::test
