#include "workloads/transformer/transformer.h"

#include "harness/core/error.h"
#include "workloads/nn/layers/attention.h"
#include "workloads/nn/layers/embedding.h"
#include "workloads/nn/layers/losses.h"
#include "workloads/nn/layers/mlp.h"
#include "workloads/nn/layers/norm.h"

#include <cmath>
#include <numbers>

namespace assay::transformer {

using nn::Builder;
using nn::Tensor;

namespace {

nn::NormShape norm_shape(const Config& c) {
  return {.kind = c.norm, .columns = c.width, .epsilon = c.norm_epsilon, .bias = c.bias};
}

nn::AttentionShape attention_shape(const Config& c) {
  nn::AttentionShape shape{.width = c.width, .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim};
  shape.bias = c.bias;
  shape.qkv_bias = c.qkv_bias;
  shape.causal = c.causal;
  shape.lengths = c.padding_mask;
  if (c.position == Position::rotary) shape.frequency = [c](std::int64_t pair) { return rotary_frequency(c, pair); };
  return shape;
}

nn::MlpShape mlp_shape(const Config& c) { return {c.mlp, c.width, c.mlp_width, c.bias}; }

// Attention and MLP, each with its norm and residual connection.
class Block {
 public:
  Block(Builder& builder, const Config& config, std::string name)
      : config_(config),
        name_(std::move(name)),
        scope_(std::make_unique<Builder::Scope>(builder, name_)),
        norm1_(builder, "norm1", norm_shape(config)),
        attention_(builder, "attention", attention_shape(config)),
        norm2_(builder, "norm2", norm_shape(config)),
        mlp_(builder, "mlp", mlp_shape(config)) {
    scope_.reset();
  }

  // The residual stream is x + residual (just x if residual is absent).
  struct Stream {
    Tensor x;
    Tensor residual;
  };
  Stream forward(Builder& builder, const Stream& in) {
    const Builder::Scope scope(builder, name_);
    const std::int64_t rows = builder.batch().samples * builder.batch().seq;
    if (config_.post_norm) {
      in_ = in.x;
      const Tensor h = norm1_.forward(builder, attention_.forward(builder, in_), in_, rows);
      return {norm2_.forward(builder, mlp_.forward(builder, h, rows), h, rows), {}};
    }
    const Tensor n1 = norm1_.forward(builder, in.x, in.residual, rows);
    in_ = norm1_.sum();
    const Tensor n2 = norm2_.forward(builder, attention_.forward(builder, n1), in_, rows);
    return {mlp_.forward(builder, n2, rows), norm2_.sum()};
  }

  // Recomputes what backward needs from the block's input, without what only the next block needs.
  void recompute(Builder& builder) {
    const Builder::Scope scope(builder, name_);
    const std::int64_t rows = builder.batch().samples * builder.batch().seq;
    builder.recomputing(true);
    if (config_.post_norm) {
      const Tensor h = norm1_.forward(builder, attention_.forward(builder, in_), in_, rows);
      norm2_.forward(builder, mlp_.forward(builder, h, rows), h, rows);
    } else {
      const Tensor n1 = norm1_.forward(builder, in_, {}, rows);
      const Tensor n2 = norm2_.forward(builder, attention_.forward(builder, n1), in_, rows);
      mlp_.recompute(builder, n2, rows);
    }
    builder.recomputing(false);
  }

  // From the gradient of the outgoing stream to that of the incoming one. If the outputs of norms were not kept, they
  // are computed again just before; that of `before`, if the stream comes from that norm.
  Tensor backward(Builder& builder, Tensor d, const nn::Norm* before) {
    const bool again = builder.selective();
    const auto refresh_mlp = [&] {
      if (again) mlp_.refresh(builder, (config_.post_norm ? norm1_ : norm2_).recompute(builder));
    };
    if (config_.post_norm) {
      // The stream is named outside of this block.
      const Tensor in = again && before ? before->recompute(builder) : in_;
      const Builder::Scope scope(builder, name_);
      d = norm2_.backward(builder, d);
      refresh_mlp();
      d = mlp_.backward(builder, d, {.dx = d, .add = true});
      d = norm1_.backward(builder, d);
      if (again) attention_.refresh(builder, in);
      return attention_.backward(builder, d, {.dx = d, .add = true});
    }
    const Builder::Scope scope(builder, name_);
    refresh_mlp();
    d = norm2_.backward(builder, mlp_.backward(builder, d, {}), d);
    if (again) attention_.refresh(builder, norm1_.recompute(builder));
    return norm1_.backward(builder, attention_.backward(builder, d, {}), d);
  }
  const nn::Norm& last_norm() const { return norm2_; }

 private:
  const Config& config_;
  std::string name_;
  std::unique_ptr<Builder::Scope> scope_;
  nn::Norm norm1_;
  nn::Attention attention_;
  nn::Norm norm2_;
  nn::Mlp mlp_;
  Tensor in_;
};

class Transformer final : public nn::Model {
 public:
  explicit Transformer(const Config& config) : c_(config) {}

  const std::string& name() const override { return c_.name; }
  nn::InputSpec input() const override {
    return {.classes = c_.vocabulary, .positions = c_.positions, .window = c_.window, .masked = !c_.causal};
  }
  std::vector<nn::ParameterSpec> parameters() const override;
  nn::ModelCost cost(const nn::BatchShape& batch) const override;
  void build(Builder& builder) const override;

 private:
  bool final_norm() const { return !c_.post_norm; }
  void check(const nn::BatchShape& batch) const;

  Config c_;
};

std::vector<nn::ParameterSpec> Transformer::parameters() const {
  std::vector<nn::ParameterSpec> list;
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in, double deviation) {
    list.push_back({.name = name + ".weight", .shape = {out, in}, .deviation = deviation});
  };
  const auto vector = [&](const std::string& name, std::int64_t size, nn::Initial initial) {
    list.push_back({.name = name, .shape = {size}, .initial = initial, .decay = false});
  };
  const auto biased = [&](const std::string& name, std::int64_t out, std::int64_t in, double deviation, bool bias) {
    matrix(name, out, in, deviation);
    if (bias) vector(name + ".bias", out, nn::Initial::zeros);
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool into_residual = false) {
    const double down = into_residual && c_.scaled_residual ? std::sqrt(2.0 * static_cast<double>(c_.layers)) : 1.0;
    biased(name, out, in, c_.deviation / down, c_.bias);
  };
  const auto norm = [&](const std::string& name) {
    vector(name + ".weight", c_.width, nn::Initial::ones);
    if (c_.norm == ops::NormKind::layer && c_.bias) vector(name + ".bias", c_.width, nn::Initial::zeros);
  };
  matrix("embedding.token", c_.vocabulary, c_.width, c_.deviation);
  if (c_.position == Position::learned) matrix("embedding.position", c_.positions, c_.width, c_.deviation);
  if (c_.token_types > 0) matrix("embedding.type", c_.token_types, c_.width, c_.deviation);
  if (c_.post_norm) norm("embedding.norm");
  for (std::int64_t layer = 0; layer < c_.layers; ++layer) {
    const std::string block = fmt::format("block.{}", layer);
    norm(block + ".norm1");
    biased(block + ".attention.qkv", (c_.heads + 2 * c_.kv_heads) * c_.head_dim, c_.width, c_.deviation,
           c_.bias || c_.qkv_bias);
    linear(block + ".attention.out", c_.width, c_.heads * c_.head_dim, true);
    norm(block + ".norm2");
    if (c_.mlp == ops::ActivationKind::silu_gate)
      linear(block + ".mlp.gate_up", 2 * c_.mlp_width, c_.width);
    else
      linear(block + ".mlp.in", c_.mlp_width, c_.width);
    linear(block + ".mlp.out", c_.width, c_.mlp_width, true);
  }
  if (final_norm()) norm("norm");
  if (c_.head_transform) {
    linear("head.transform", c_.width, c_.width);
    norm("head.norm");
  }
  if (!c_.tied) matrix("head", c_.vocabulary, c_.width, c_.deviation);
  if (c_.head_transform) vector("head.bias", c_.vocabulary, nn::Initial::zeros);
  return list;
}

void Transformer::check(const nn::BatchShape& batch) const {
  if (batch.seq < 1) throw UsageError(fmt::format("{}: seq must be at least 1", c_.name));
  if (const auto problem = nn::problem_of_seq(input(), batch.seq))
    throw UsageError(fmt::format("{}: {}", c_.name, *problem));
}

nn::ModelCost Transformer::cost(const nn::BatchShape& batch) const {
  check(batch);
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double mixed = real(c_.heads * c_.head_dim), keys = real(c_.kv_heads * c_.head_dim), width = real(c_.width);
  const double inner = real(c_.mlp_width) * (c_.mlp == ops::ActivationKind::silu_gate ? 3 : 2);
  const double block = width * (mixed + 2 * keys) + mixed * width + width * inner;
  const double transform = c_.head_transform ? width * width : 0;
  const double matrices = real(c_.layers) * block + transform + real(c_.vocabulary) * width;
  // Two products with all earlier tokens (half the square), or with all tokens.
  const double full = real(c_.layers) * 4 * mixed * real(batch.seq);
  const double attention = c_.causal ? full / 2 : full;
  nn::ModelCost cost;
  cost.forward = real(batch.seq) * (2 * matrices + attention);
  cost.training = 3 * cost.forward;
  cost.training_full_attention = 3 * real(batch.seq) * (2 * matrices + full);
  cost.formula = fmt::format(
      "a token: forward = 2 x {:.0f} matrix weights (LM head included) + {} x {} layers x {} heads x {} head_dim x "
      "{} seq{}; training = 3 x forward",
      matrices, c_.causal ? 2 : 4, c_.layers, c_.heads, c_.head_dim, batch.seq,
      c_.causal ? " (half the square)" : " (the whole square)");
  return cost;
}

void Transformer::build(Builder& builder) const {
  check(builder.batch());
  if (builder.selective() && builder.fp8())
    throw UsageError(
        "checkpointing=selective: with 8-bit products the inputs of products are kept in 8 bits instead; use "
        "checkpointing=none or full");
  const std::int64_t rows = builder.batch().samples * builder.batch().seq;
  nn::Embedding embedding(builder, {.vocabulary = c_.vocabulary,
                                    .width = c_.width,
                                    .positions = c_.position == Position::learned ? c_.positions : 0,
                                    .types = c_.token_types});
  Block::Stream stream{embedding.forward(builder), {}};
  std::optional<nn::Norm> embedding_norm;
  if (c_.post_norm) {
    embedding_norm.emplace(builder, "embedding.norm", norm_shape(c_));
    stream.x = embedding_norm->forward(builder, stream.x, {}, rows);
  }
  std::vector<Block> blocks;
  blocks.reserve(static_cast<std::size_t>(c_.layers));
  for (std::int64_t layer = 0; layer < c_.layers; ++layer) {
    blocks.emplace_back(builder, c_, fmt::format("block.{}", layer));
    stream = blocks.back().forward(builder, stream);
  }
  Tensor h = stream.x;
  std::optional<nn::Norm> norm, head_norm;
  std::optional<nn::Linear> transform;
  if (final_norm()) {
    norm.emplace(builder, "norm", norm_shape(c_));
    h = norm->forward(builder, stream.x, stream.residual, rows);
  }
  if (c_.head_transform) {
    const bool tanh = c_.mlp == ops::ActivationKind::gelu_tanh;
    transform.emplace(builder, "head.transform", c_.width, c_.width, c_.bias);
    head_norm.emplace(builder, "head.norm", norm_shape(c_));
    h = transform->forward(builder, h, rows, tanh ? ops::Epilogue::gelu_tanh : ops::Epilogue::gelu_erf);
    h = head_norm->forward(builder, h, {}, rows);
  }
  const nn::LmHead head(c_.tied ? embedding.table() : builder.parameter("head.weight"),
                        c_.head_transform ? builder.parameter("head.bias") : nn::Parameter{}, c_.vocabulary, c_.width);
  Tensor d = head.forward(builder, h);
  if (!builder.training()) return;

  builder.phase(nn::Phase::backward);
  if (c_.head_transform) {
    d = head_norm->backward(builder, d);
    d = transform->backward_through_gelu(builder, d, c_.mlp);
  }
  if (final_norm()) d = norm->backward(builder, d);
  for (std::size_t i = blocks.size(); i-- > 0;) {
    if (builder.checkpointing()) blocks[i].recompute(builder);
    const nn::Norm* first = embedding_norm ? &*embedding_norm : nullptr;
    d = blocks[i].backward(builder, d, i > 0 ? &blocks[i - 1].last_norm() : first);
  }
  if (embedding_norm) d = embedding_norm->backward(builder, d);
  embedding.backward(builder, d);
}

}  // namespace

double rotary_frequency(const Config& config, std::int64_t pair) {
  const double exponent = 2.0 * static_cast<double>(pair) / static_cast<double>(config.head_dim);
  const double frequency = std::pow(config.rotary_base, -exponent);
  if (!config.rotary_scaling) return frequency;
  const RotaryScaling& s = *config.rotary_scaling;
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < s.original_positions / s.high_frequency_factor) return frequency;
  if (wavelength > s.original_positions / s.low_frequency_factor) return frequency / s.factor;
  const double smooth =
      (s.original_positions / wavelength - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

std::unique_ptr<nn::Model> make_transformer(const Config& config) { return std::make_unique<Transformer>(config); }

}  // namespace assay::transformer
