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
  template <typename Op>
  std::shared_ptr<Op> find(const typename Op::Desc& desc, std::string& reason) {
    auto& known = std::get<Known<Op>>(known_);
    for (const auto& [built, op] : known)
      if (built == desc) return op;
    ops::Made<Op> made = backend_->make<Op>(desc);
    if (!made) {
      reason = made.reason();
      return nullptr;
    }
    std::shared_ptr<Op> op = made.take();
    implementations_.insert(fmt::format("{} {}", kind_of<typename Op::Desc>(), op->implementation()));
    if (const std::string choice = op->choice(); !choice.empty())
      choices_.insert(fmt::format("{} {}", kind_of<typename Op::Desc>(), choice));
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
  template <typename Op>
  using Known = std::vector<std::pair<typename Op::Desc, std::shared_ptr<Op>>>;

  template <typename Desc>
  static constexpr const char* kind_of() {
    using namespace ops;
    if constexpr (std::is_same_v<Desc, MatmulDesc>) return "matmul";
    if constexpr (std::is_same_v<Desc, ConvDesc>) return "convolution";
    if constexpr (std::is_same_v<Desc, BatchNormDesc>) return "batch_norm";
    if constexpr (std::is_same_v<Desc, PoolDesc>) return "pool";
    if constexpr (std::is_same_v<Desc, NormDesc>) return "norm";
    if constexpr (std::is_same_v<Desc, AttentionDesc>) return "attention";
    if constexpr (std::is_same_v<Desc, RotaryDesc>) return "rotary";
    if constexpr (std::is_same_v<Desc, ActivationDesc>) return "activation";
    if constexpr (std::is_same_v<Desc, EmbeddingDesc>) return "embedding";
    if constexpr (std::is_same_v<Desc, CrossEntropyDesc>) return "cross_entropy";
    if constexpr (std::is_same_v<Desc, QuantizeDesc>) return "quantize";
    return "elementwise";
  }

  std::shared_ptr<ops::Backend> backend_;
  std::set<std::string> implementations_, choices_;
  bool repeats_ = true;
  ops::EachOp<Known> known_;
};

}  // namespace assay::nn
