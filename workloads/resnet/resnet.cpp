#include "workloads/resnet/resnet.h"

#include "harness/core/error.h"
#include "workloads/nn/layers/conv_norm.h"
#include "workloads/nn/layers/losses.h"
#include "workloads/nn/layers/pool.h"

#include <cmath>
#include <utility>

namespace assay::resnet {

using nn::Builder;
using nn::Tensor;

namespace {

constexpr std::int64_t colours = 3;
constexpr std::int64_t expansion = 4;  // of a bottleneck's last convolution

// One convolution of the network, with the name of its norm.
struct Unit {
  std::string conv;
  std::string norm;
  ops::ConvDesc shape;
  bool relu = true;
  bool last = false;  // of its block
};

struct BlockPlan {
  std::string name;
  std::vector<Unit> path;
  std::optional<Unit> downsample;
};

struct Network {
  Unit stem;
  std::optional<ops::PoolDesc> pool;
  std::vector<BlockPlan> blocks;
  ops::PoolDesc average;
  std::int64_t features = 0;
};

struct Image {
  std::int64_t size;
  std::int64_t channels;
};

// A square convolution that changes the size only by its stride.
ops::ConvDesc convolution(std::int64_t samples, const Image& in, std::int64_t out, std::int64_t window,
                          std::int64_t stride, std::int64_t groups = 1) {
  ops::ConvDesc desc{
      .n = samples, .c = in.channels, .k = out, .stride = stride, .padding = window / 2, .groups = groups};
  desc.h = desc.w = in.size;
  desc.r = desc.s = window;
  return desc;
}

Image after(const ops::ConvDesc& desc) { return {desc.p(), desc.k}; }

BlockPlan plan_block(const Config& c, std::string name, std::int64_t samples, const Image& in, std::int64_t width,
                     std::int64_t stride) {
  BlockPlan block{std::move(name), {}, {}};
  Image image = in;
  const auto add = [&](std::int64_t out, std::int64_t window, std::int64_t step, std::int64_t groups) {
    const std::string number = std::to_string(block.path.size() + 1);
    block.path.push_back({"conv" + number, "norm" + number, convolution(samples, image, out, window, step, groups)});
    image = after(block.path.back().shape);
  };
  if (c.block == BlockKind::bottleneck) {
    add(width, 1, 1, 1);
    add(width, 3, stride, c.groups);
    add(width * expansion, 1, 1, 1);
  } else {
    add(width, 3, stride, 1);
    add(width, 3, 1, 1);
  }
  block.path.back().last = true;
  if (stride != 1 || in.channels != image.channels)
    block.downsample = {"downsample.conv", "downsample.norm", convolution(samples, in, image.channels, 1, stride),
                        false};
  return block;
}

Network plan_network(const Config& c, std::int64_t samples) {
  Network network;
  Image image{c.image, colours};
  network.stem = {"stem.conv", "stem.norm",
                  convolution(samples, image, c.width, c.small_stem ? 3 : 7, c.small_stem ? 1 : 2)};
  image = after(network.stem.shape);
  if (!c.small_stem) {
    ops::PoolDesc pool{.n = samples, .c = image.channels, .window_h = 3, .window_w = 3, .stride = 2, .padding = 1};
    pool.h = pool.w = image.size;
    network.pool = pool;
    image.size = pool.p();
  }
  for (std::size_t stage = 0; stage < c.stages.size(); ++stage)
    for (std::int64_t i = 0; i < c.stages[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      network.blocks.push_back(
          plan_block(c, fmt::format("stage.{}.block.{}", stage, i), samples, image, c.width << stage, stride));
      image = after(network.blocks.back().path.back().shape);
    }
  network.average = {.kind = ops::PoolKind::average, .n = samples, .c = image.channels};
  network.average.h = network.average.w = network.average.window_h = network.average.window_w = image.size;
  network.features = image.channels;
  return network;
}

double macs(const ops::ConvDesc& d) {
  return static_cast<double>(d.p() * d.q() * d.k) * static_cast<double>(d.r * d.s * d.c / d.groups);
}

class Block {
 public:
  Block(Builder& builder, const BlockPlan& plan) : name_(plan.name) {
    const Builder::Scope scope(builder, name_);
    for (const Unit& unit : plan.path) path_.emplace_back(builder, unit.conv, unit.norm, unit.shape, unit.relu);
    if (const auto& unit = plan.downsample)
      downsample_.emplace(builder, unit->conv, unit->norm, unit->shape, unit->relu);
  }

  Tensor forward(Builder& builder, Tensor x) {
    const Builder::Scope scope(builder, name_);
    in_ = x;
    shortcut_ = downsample_ ? downsample_->forward(builder, x) : x;
    for (std::size_t i = 0; i + 1 < path_.size(); ++i) x = path_[i].forward(builder, x);
    return path_.back().forward(builder, x, shortcut_);
  }

  // Recomputes what backward needs from the block's input. The output still exists, as the input of what follows.
  void recompute(Builder& builder) {
    const Builder::Scope scope(builder, name_);
    builder.recomputing(true);
    Tensor x = in_;
    if (downsample_) downsample_->recompute(builder, x, false);
    for (std::size_t i = 0; i + 1 < path_.size(); ++i) x = path_[i].recompute(builder, x, true);
    path_.back().recompute(builder, x, false);
    builder.recomputing(false);
  }

  nn::TwoGradients backward(Builder& builder, nn::TwoGradients dy) {
    const Builder::Scope scope(builder, name_);
    const auto last = path_.back().backward(builder, dy);
    Tensor d = last.dx;
    for (std::size_t i = path_.size() - 1; i-- > 0;) d = path_[i].backward(builder, {d, {}}).dx;
    return {d, downsample_ ? downsample_->backward(builder, {last.residual, {}}).dx : last.residual};
  }

 private:
  std::string name_;
  std::vector<nn::ConvNorm> path_;
  std::optional<nn::ConvNorm> downsample_;
  Tensor in_, shortcut_;
};

class Resnet final : public nn::Model {
 public:
  explicit Resnet(const Config& config) : c_(config) {}

  const std::string& name() const override { return c_.name; }
  nn::InputSpec input() const override { return {.classes = c_.classes, .image_size = c_.image}; }
  std::vector<nn::ParameterSpec> parameters() const override;
  nn::ModelCost cost(const nn::BatchShape& batch) const override;
  void build(Builder& builder) const override;

 private:
  Config c_;
};

std::vector<nn::ParameterSpec> Resnet::parameters() const {
  const Network network = plan_network(c_, 1);
  std::vector<nn::ParameterSpec> list;
  const auto unit = [&](const std::string& prefix, const Unit& u) {
    const ops::ConvDesc& d = u.shape;
    // He et al. 2015 with fan-out, as in torchvision.
    const double deviation = std::sqrt(2.0 / static_cast<double>(d.k * d.r * d.s / d.groups));
    list.push_back(
        {.name = prefix + u.conv + ".weight", .shape = {d.k, d.r, d.s, d.c / d.groups}, .deviation = deviation});
    const auto scale = u.last && c_.zero_last_scale ? nn::Initial::zeros : nn::Initial::ones;
    list.push_back({.name = prefix + u.norm + ".weight", .shape = {d.k}, .initial = scale, .decay = false});
    list.push_back({.name = prefix + u.norm + ".bias", .shape = {d.k}, .initial = nn::Initial::zeros, .decay = false});
  };
  unit("", network.stem);
  for (const BlockPlan& block : network.blocks) {
    for (const Unit& u : block.path) unit(block.name + ".", u);
    if (block.downsample) unit(block.name + ".", *block.downsample);
  }
  list.push_back({.name = "classifier.weight", .shape = {c_.classes, network.features}, .deviation = 0.01});
  list.push_back({.name = "classifier.bias", .shape = {c_.classes}, .initial = nn::Initial::zeros, .decay = false});
  return list;
}

nn::ModelCost Resnet::cost(const nn::BatchShape&) const {
  const Network network = plan_network(c_, 1);
  double total = macs(network.stem.shape) + static_cast<double>(c_.classes * network.features);
  for (const BlockPlan& block : network.blocks) {
    for (const Unit& u : block.path) total += macs(u.shape);
    if (block.downsample) total += macs(block.downsample->shape);
  }
  nn::ModelCost cost;
  cost.forward = 2 * total;
  cost.training = 3 * cost.forward - 2 * macs(network.stem.shape);
  cost.training_full_attention = cost.training;
  cost.formula = fmt::format(
      "an image of {0} x {0}: forward = 2 x {1:.0f} multiply-adds of convolutions and classifier; training = 3 x "
      "forward - 2 x {2:.0f} (no data gradient of the first layer)",
      c_.image, total, macs(network.stem.shape));
  return cost;
}

void Resnet::build(Builder& builder) const {
  if (builder.selective())
    throw UsageError(fmt::format(
        "checkpointing=selective: {} has no norms beside products; use checkpointing=none or full", c_.name));
  const std::int64_t samples = builder.batch().samples;
  const Network network = plan_network(c_, samples);
  const std::int64_t pixels = samples * c_.image * c_.image * colours;
  const Tensor images = nn::append_cast(builder, builder.input(nn::Input::images, pixels), pixels, DType::f32);
  nn::ConvNorm stem(builder, network.stem.conv, network.stem.norm, network.stem.shape, true);
  Tensor x = stem.forward(builder, images);
  std::optional<nn::Pool> pool;
  if (network.pool) {
    pool.emplace("stem.pool", *network.pool);
    x = pool->forward(builder, x);
  }
  std::vector<Block> blocks;
  blocks.reserve(network.blocks.size());
  for (const BlockPlan& plan : network.blocks) {
    blocks.emplace_back(builder, plan);
    x = blocks.back().forward(builder, x);
  }
  nn::Pool average("pool", network.average);
  x = average.forward(builder, x);
  nn::Classifier classifier(builder, "classifier", network.features, c_.classes);
  const Tensor dx = classifier.forward(builder, x);
  if (!builder.training()) return;

  builder.phase(nn::Phase::backward);
  nn::TwoGradients d{average.backward(builder, dx), {}};
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (builder.checkpointing()) block->recompute(builder);
    d = block->backward(builder, d);
  }
  if (pool) {
    const ops::ConvDesc& first = network.blocks.front().path.front().shape;
    d = {pool->backward(builder, nn::append_add(builder, d.first, d.second, first.n * first.h * first.w * first.c)),
         {}};
  }
  stem.backward(builder, d, false);
}

}  // namespace

std::unique_ptr<nn::Model> make_resnet(const Config& config) { return std::make_unique<Resnet>(config); }

}  // namespace assay::resnet
