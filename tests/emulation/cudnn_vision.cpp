// Stand-in of cuDNN's batch norm and average pooling: the oracle's, on copies in f32, with cuDNN's quirks. In training
// it has no engine for a residual without ReLU, nor for channels that do not fill a multiple of 16 bytes; outputs must
// not alias inputs; plans use all of their workspace. They take no time by events, so they win against our own kernels,
// which are emulated thread by thread. Scripted: cudnn=absent has no engines, with cudnn=refuses plans are built but do
// not run, with cudnn=wrong they write one wrong element, to an output that the number of rows selects.
#include "harness/core/error.h"
#include "harness/device/cuda/check.h"
#include "tests/emulation/cudnn_tensors.h"
#include "tests/emulation/runtime.h"
#include "tests/oracle/oracle.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/pool.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

namespace assay::ops::cudnn {

namespace {

bool is(std::string_view mood) { return emulation::scripted("cudnn") == mood; }

constexpr std::size_t scratch_bytes = 1000;

class EmulatedPlan : public Plan {
 public:
  std::size_t workspace_bytes() const override { return scratch_bytes; }

  void run(cudaStream_t stream, std::span<const Operand> operands, void* workspace) const final {
    if (refuses_) throw RunError("emulated cuDNN: this plan does not run");
    Places at{};
    for (const Operand& operand : operands) {
      check_tensor(operand.data);
      at.at(static_cast<std::size_t>(operand.id)) = operand.data;
    }
    if (operands.size() != tensors())
      throw Error(fmt::format("emulated cuDNN: {} tensors in place of {}", operands.size(), tensors()));
    check(at);
    ASSAY_CUDA(emulation::enqueue(stream, [=, this] {
      const auto start = std::chrono::steady_clock::now();
      std::memset(workspace, 0xff, scratch_bytes);
      compute(at);
      if (is("wrong")) spoil(at);
      emulation::uncount(std::chrono::steady_clock::now() - start);
    }));
  }

 protected:
  using Places = std::array<void*, 18>;  // by id

  virtual std::size_t tensors() const = 0;
  virtual void check(const Places&) const {}
  virtual void compute(const Places& at) const = 0;
  // The tensor that a wrong plan spoils, and its elements.
  struct Tensor {
    std::int64_t id;
    DType dtype;
    std::int64_t count;
  };
  virtual Tensor spoiled() const = 0;

  static Backend& oracle() {
    static const std::shared_ptr<Backend> backend = make_reference_backend();
    return *backend;
  }

 private:
  void spoil(const Places& at) const {
    const auto [id, dtype, count] = spoiled();
    void* const data = at.at(static_cast<std::size_t>(id));
    const auto middle = static_cast<std::size_t>(count / 2);
    write(data, dtype, middle, 1000 - read(data, dtype, middle));
  }

  bool refuses_ = is("refuses");
};

class EmulatedBatchNorm final : public EmulatedPlan {
 public:
  explicit EmulatedBatchNorm(const BatchNormGraph& graph) : d_(graph) {}
  std::string name() const override {
    return fmt::format("emulated plan of batch norm in {}", d_.training ? "training" : "evaluation");
  }

 private:
  Tensor spoiled() const override {
    constexpr std::array written = {batch_norm_y, batch_norm_saved_mean, batch_norm_saved_inverse_deviation,
                                    batch_norm_next_mean, batch_norm_next_variance};
    const std::int64_t id = written[d_.training ? static_cast<std::size_t>(d_.rows) % written.size() : 0];
    return id == batch_norm_y ? Tensor{id, d_.dtype, d_.rows * d_.channels} : Tensor{id, DType::f32, d_.channels};
  }

  std::size_t tensors() const override { return (d_.training ? 10u : 6u) + (d_.residual ? 1u : 0u); }

  void check(const Places& at) const override {
    if (d_.training && (at[batch_norm_next_mean] == at[batch_norm_running_mean] ||
                        at[batch_norm_next_variance] == at[batch_norm_running_variance]))
      throw Error("emulated cuDNN: running statistics are read and written in one place");
  }

  void compute(const Places& at) const override {
    const auto channels = static_cast<std::size_t>(d_.channels), count = static_cast<std::size_t>(d_.rows) * channels;
    const auto statistic = [&](std::int64_t id) { return static_cast<float*>(at.at(static_cast<std::size_t>(id))); };
    const std::vector<float> x = copy_of(at[batch_norm_x], d_.dtype, count);
    std::vector<float> residual, y(count);
    if (d_.residual) residual = copy_of(at[batch_norm_residual], d_.dtype, count);
    std::vector<float> mean = copy_of(at[batch_norm_running_mean], DType::f32, channels);
    std::vector<float> variance = copy_of(at[batch_norm_running_variance], DType::f32, channels);
    NoStream stream;
    oracle()
        .make<BatchNormForward>({.rows = d_.rows,
                                 .channels = d_.channels,
                                 .relu = d_.relu,
                                 .residual = d_.residual,
                                 .training = d_.training,
                                 .epsilon = static_cast<double>(d_.epsilon),
                                 .momentum = static_cast<double>(d_.momentum)})
        .take()
        ->run(stream, {.x = x.data(),
                       .residual = residual.data(),
                       .scale = statistic(batch_norm_scale),
                       .shift = statistic(batch_norm_shift),
                       .running_mean = mean.data(),
                       .running_variance = variance.data(),
                       .y = y.data(),
                       .saved_mean = at[batch_norm_saved_mean],
                       .saved_inverse_deviation = at[batch_norm_saved_inverse_deviation]});
    put(y, at[batch_norm_y], d_.dtype);
    if (!d_.training) return;
    put(mean, at[batch_norm_next_mean], DType::f32);
    put(variance, at[batch_norm_next_variance], DType::f32);
  }

  BatchNormGraph d_;
};

class EmulatedBatchNormGradient final : public EmulatedPlan {
 public:
  explicit EmulatedBatchNormGradient(const BatchNormGradientGraph& graph) : d_(graph) {}
  std::string name() const override { return "emulated plan of batch norm's gradient"; }

 private:
  Tensor spoiled() const override {
    constexpr std::array written = {batch_norm_dx, batch_norm_dscale, batch_norm_dshift, batch_norm_dresidual};
    const std::size_t outputs = d_.relu_and_residual ? written.size() : written.size() - 1;
    const std::int64_t id = written[static_cast<std::size_t>(d_.rows) % outputs];
    return id == batch_norm_dx || id == batch_norm_dresidual ? Tensor{id, d_.dtype, d_.rows * d_.channels}
                                                             : Tensor{id, DType::f32, d_.channels};
  }

  std::size_t tensors() const override { return 8u + (d_.relu_and_residual ? 2u : 0u) + (d_.two_gradients ? 1u : 0u); }

  void check(const Places& at) const override {
    for (const std::int64_t written : {batch_norm_dx, batch_norm_dresidual, batch_norm_dscale, batch_norm_dshift})
      for (const std::int64_t read : {batch_norm_dy, batch_norm_dy_other, batch_norm_x, batch_norm_y, batch_norm_scale})
        if (at[static_cast<std::size_t>(written)] &&
            at[static_cast<std::size_t>(written)] == at[static_cast<std::size_t>(read)])
          throw Error(fmt::format("emulated cuDNN: tensor {} is written over tensor {}", written, read));
  }

  void compute(const Places& at) const override {
    const auto channels = static_cast<std::size_t>(d_.channels), count = static_cast<std::size_t>(d_.rows) * channels;
    const auto image = [&](std::int64_t id) {
      const void* data = at.at(static_cast<std::size_t>(id));
      return data ? copy_of(data, d_.dtype, count) : std::vector<float>();
    };
    const std::vector<float> dy = image(batch_norm_dy), other = image(batch_norm_dy_other), x = image(batch_norm_x),
                             y = image(batch_norm_y);
    std::vector<float> dx(count), dresidual(d_.relu_and_residual ? count : 0);
    NoStream stream;
    oracle()
        .make<BatchNormBackward>({.rows = d_.rows,
                                  .channels = d_.channels,
                                  .relu = d_.relu_and_residual,
                                  .residual = d_.relu_and_residual,
                                  .two_gradients = d_.two_gradients})
        .take()
        ->run(stream, {.dy = dy.data(),
                       .dy_other = d_.two_gradients ? other.data() : nullptr,
                       .x = x.data(),
                       .y = y.data(),
                       .scale = at[batch_norm_scale],
                       .saved_mean = at[batch_norm_saved_mean],
                       .saved_inverse_deviation = at[batch_norm_saved_inverse_deviation],
                       .dx = dx.data(),
                       .dresidual = dresidual.data(),
                       .dscale = at[batch_norm_dscale],
                       .dshift = at[batch_norm_dshift]});
    put(dx, at[batch_norm_dx], d_.dtype);
    if (d_.relu_and_residual) put(dresidual, at[batch_norm_dresidual], d_.dtype);
  }

  BatchNormGradientGraph d_;
};

class EmulatedAveragePool final : public EmulatedPlan {
 public:
  explicit EmulatedAveragePool(const PoolDesc& graph) : d_(graph) {}
  std::string name() const override { return "emulated plan of average pooling"; }

 private:
  Tensor spoiled() const override { return {pool_y, d_.dtype, d_.n * d_.p() * d_.q() * d_.c}; }

  std::size_t tensors() const override { return 2; }

  void compute(const Places& at) const override {
    const std::vector<float> x = copy_of(at[pool_x], d_.dtype, static_cast<std::size_t>(d_.n * d_.h * d_.w * d_.c));
    std::vector<float> y(static_cast<std::size_t>(d_.n * d_.p() * d_.q() * d_.c));
    NoStream stream;
    oracle()
        .make<PoolForward>({.kind = PoolKind::average,
                            .n = d_.n,
                            .h = d_.h,
                            .w = d_.w,
                            .c = d_.c,
                            .window_h = d_.window_h,
                            .window_w = d_.window_w,
                            .stride = d_.stride,
                            .padding = d_.padding})
        .take()
        ->run(stream, {.x = x.data(), .y = y.data()});
    put(y, at[pool_y], d_.dtype);
  }

  PoolDesc d_;
};

}  // namespace

Plans batch_norm_forward_plans(const BatchNormGraph& d, const Limits& limits) {
  if (is("absent") || (d.training && d.residual && !d.relu) ||
      (d.training && d.channels * static_cast<std::int64_t>(size_of(d.dtype)) % 16 != 0))
    return {{}, fmt::format("{}: no engine for batch norm of {} channels", version(), d.channels)};
  return offered({std::make_shared<EmulatedBatchNorm>(d)}, limits);
}

Plans batch_norm_backward_plans(const BatchNormGradientGraph& d, const Limits& limits) {
  if (is("absent") || d.channels * static_cast<std::int64_t>(size_of(d.dtype)) % 16 != 0 ||
      (d.two_gradients && !d.relu_and_residual))
    return {{}, fmt::format("{}: no engine for the gradient of batch norm of {} channels", version(), d.channels)};
  return offered({std::make_shared<EmulatedBatchNormGradient>(d)}, limits);
}

Plans average_pool_plans(const PoolDesc& d, const Limits& limits) {
  if (is("absent")) return {{}, fmt::format("{}: no engine for average pooling", version())};
  return offered({std::make_shared<EmulatedAveragePool>(d)}, limits);
}

}  // namespace assay::ops::cudnn
