// Ops by descriptor: equal layers share one op.
#pragma once

#include "workloads/ops/backend.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace assay::nn {

class OpCache {
 public:
  explicit OpCache(std::shared_ptr<ops::Backend> backend) : backend_(std::move(backend)) {}

  ops::Backend& backend() const { return *backend_; }

  // The op, or null and the backend's reason.
  template <typename Op, typename Desc>
  std::shared_ptr<Op> find(const Desc& desc, std::string& reason) {
    auto& known = std::get<Known<Op, Desc>>(known_);
    for (const auto& [built, op] : known)
      if (built == desc) return op;
    ops::Made<Op> made = make<Op>(desc);
    if (!made) {
      reason = made.reason();
      return nullptr;
    }
    std::shared_ptr<Op> op = made.take();
    implementations_.insert(fmt::format("{} {}", kind_of<Op>(), op->implementation()));
    if (const std::string choice = op->choice(); !choice.empty())
      choices_.insert(fmt::format("{} {}", kind_of<Op>(), choice));
    repeats_ = repeats_ && op->repeats();
    known.emplace_back(desc, op);
    return op;
  }

  // "attention blockwise; convolution brgconv:avx512_core": each kind of op with its implementations.
  std::string implementations() const { return fmt::format("{}", fmt::join(implementations_, "; ")); }
  // The choices that ops made by trial, in the same format.
  std::string choices() const { return fmt::format("{}", fmt::join(choices_, "; ")); }
  // Whether all ops are bitwise reproducible.
  bool repeats() const { return repeats_; }

 private:
  template <typename Op, typename Desc>
  using Known = std::vector<std::pair<Desc, std::shared_ptr<Op>>>;

  template <typename Op, typename Desc>
  ops::Made<Op> make(const Desc& d) {
    using namespace ops;
    // clang-format off
    if constexpr (std::is_same_v<Op, Matmul>) return backend_->make(d);
    else if constexpr (std::is_same_v<Op, ConvForward>) return backend_->conv_forward(d);
    else if constexpr (std::is_same_v<Op, ConvBackwardData>) return backend_->conv_backward_data(d);
    else if constexpr (std::is_same_v<Op, ConvBackwardWeights>) return backend_->conv_backward_weights(d);
    else if constexpr (std::is_same_v<Op, BatchNormForward>) return backend_->batch_norm_forward(d);
    else if constexpr (std::is_same_v<Op, BatchNormBackward>) return backend_->batch_norm_backward(d);
    else if constexpr (std::is_same_v<Op, PoolForward>) return backend_->pool_forward(d);
    else if constexpr (std::is_same_v<Op, PoolBackward>) return backend_->pool_backward(d);
    else if constexpr (std::is_same_v<Op, NormForward>) return backend_->norm_forward(d);
    else if constexpr (std::is_same_v<Op, NormBackward>) return backend_->norm_backward(d);
    else if constexpr (std::is_same_v<Op, AttentionForward>) return backend_->attention_forward(d);
    else if constexpr (std::is_same_v<Op, AttentionBackward>) return backend_->attention_backward(d);
    else if constexpr (std::is_same_v<Op, Rotary>) return backend_->rotary(d);
    else if constexpr (std::is_same_v<Op, ActivationForward>) return backend_->activation_forward(d);
    else if constexpr (std::is_same_v<Op, ActivationBackward>) return backend_->activation_backward(d);
    else if constexpr (std::is_same_v<Op, EmbeddingForward>) return backend_->embedding_forward(d);
    else if constexpr (std::is_same_v<Op, EmbeddingBackward>) return backend_->embedding_backward(d);
    else if constexpr (std::is_same_v<Op, CrossEntropy>) return backend_->cross_entropy(d);
    else if constexpr (std::is_same_v<Op, Quantize>) return backend_->quantize(d);
    else return backend_->elementwise(d);
    // clang-format on
  }

  template <typename Op>
  static constexpr const char* kind_of() {
    using namespace ops;
    // clang-format off
    if constexpr (std::is_same_v<Op, Matmul>) return "matmul";
    else if constexpr (std::is_base_of_v<PackedWeights, Op> || std::is_same_v<Op, ConvBackwardWeights>) return "convolution";
    else if constexpr (std::is_same_v<Op, BatchNormForward> || std::is_same_v<Op, BatchNormBackward>) return "batch_norm";
    else if constexpr (std::is_same_v<Op, PoolForward> || std::is_same_v<Op, PoolBackward>) return "pool";
    else if constexpr (std::is_same_v<Op, NormForward> || std::is_same_v<Op, NormBackward>) return "norm";
    else if constexpr (std::is_same_v<Op, AttentionForward> || std::is_same_v<Op, AttentionBackward>) return "attention";
    else if constexpr (std::is_same_v<Op, Rotary>) return "rotary";
    else if constexpr (std::is_same_v<Op, ActivationForward> || std::is_same_v<Op, ActivationBackward>) return "activation";
    else if constexpr (std::is_same_v<Op, EmbeddingForward> || std::is_same_v<Op, EmbeddingBackward>) return "embedding";
    else if constexpr (std::is_same_v<Op, CrossEntropy>) return "cross_entropy";
    else if constexpr (std::is_same_v<Op, Quantize>) return "quantize";
    else return "elementwise";
    // clang-format on
  }

  std::shared_ptr<ops::Backend> backend_;
  std::set<std::string> implementations_, choices_;
  bool repeats_ = true;
  std::tuple<Known<ops::Matmul, ops::MatmulDesc>, Known<ops::ConvForward, ops::ConvDesc>,
             Known<ops::ConvBackwardData, ops::ConvDesc>, Known<ops::ConvBackwardWeights, ops::ConvDesc>,
             Known<ops::BatchNormForward, ops::BatchNormDesc>, Known<ops::BatchNormBackward, ops::BatchNormDesc>,
             Known<ops::PoolForward, ops::PoolDesc>, Known<ops::PoolBackward, ops::PoolDesc>,
             Known<ops::NormForward, ops::NormDesc>, Known<ops::NormBackward, ops::NormDesc>,
             Known<ops::AttentionForward, ops::AttentionDesc>, Known<ops::AttentionBackward, ops::AttentionDesc>,
             Known<ops::Rotary, ops::RotaryDesc>, Known<ops::ActivationForward, ops::ActivationDesc>,
             Known<ops::ActivationBackward, ops::ActivationDesc>, Known<ops::EmbeddingForward, ops::EmbeddingDesc>,
             Known<ops::EmbeddingBackward, ops::EmbeddingDesc>, Known<ops::CrossEntropy, ops::CrossEntropyDesc>,
             Known<ops::Quantize, ops::QuantizeDesc>, Known<ops::Elementwise, ops::ElementwiseDesc>>
      known_;
};

}  // namespace assay::nn
