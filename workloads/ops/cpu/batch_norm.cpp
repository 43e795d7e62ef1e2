// Batch norm: threads share the rows. The first pass computes each thread's sums, which are added in thread order; the
// second pass writes. The second runs backwards, to begin with rows that the first left in the caches.
#include "workloads/ops/cpu/cpu_ops.h"

#include "workloads/ops/cpu/kernels/batch_norm_kernels.h"
#include "workloads/ops/cpu/parallel.h"

#include <algorithm>
#include <cmath>

namespace assay::ops {

namespace {

constexpr std::int64_t batch_norm_min_elements = 8192;  // per thread: splitting less work costs more than it saves
constexpr std::int64_t block_bytes = 128 << 10;         // of one array: the second pass runs forwards within a block
constexpr std::int64_t streamed_bytes = 8 << 20;        // larger arrays bypass the caches, not to evict everything else
constexpr std::int64_t max_samples = 16;                // rows averaged for the shift of the sums

const BatchNormKernels::Typed& batch_norm_kernels_for(DType dtype) {
  const auto& kernels = cpu::kernels<BatchNormKernels>();
  return dtype == DType::f32 ? kernels.f32 : kernels.bf16;
}

// Common to both directions: the split of the rows, and the layout of the workspace.
class Plan {
 public:
  // `arrays`: number of per-channel f32 arrays in the workspace.
  Plan(const BatchNormDesc& desc, int arrays)
      : d_(desc),
        parts_(static_cast<int>(
            std::min<std::int64_t>(parts_for(desc.rows * desc.channels, batch_norm_min_elements), desc.rows))),
        padded_((desc.channels + channel_padding - 1) / channel_padding * channel_padding),
        arrays_(arrays) {}

  // f64 sums (parts, 2, padded), then f32 partial sums (parts, 2, padded), then the arrays (arrays, padded).
  std::size_t workspace_bytes() const {
    const auto sums = static_cast<std::size_t>(2 * parts_ * padded_);
    return sums * (sizeof(double) + sizeof(float)) + static_cast<std::size_t>(arrays_ * padded_) * sizeof(float);
  }
  double* sums(void* workspace, int part) const { return static_cast<double*>(workspace) + part * 2 * padded_; }
  float* partial(void* workspace, int part) const {
    return reinterpret_cast<float*>(sums(workspace, parts_)) + part * 2 * padded_;
  }
  float* array(void* workspace, int index) const { return partial(workspace, parts_) + index * padded_; }

  // Calls gather_part(rows of a part, its sums, scratch), then adds all parts' sums into those of part 0.
  template <typename Gather>
  void gather(void* workspace, const Gather& gather_part) const {
    for_parts(parts_, [&](int part) {
      std::fill_n(sums(workspace, part), 2 * padded_, 0.0);
      gather_part(part_of(d_.rows, 1, part, parts_), sums(workspace, part), partial(workspace, part));
    });
    double* total = sums(workspace, 0);
    for (int part = 1; part < parts_; ++part)
      for (std::int64_t i = 0; i < 2 * padded_; ++i) total[i] += sums(workspace, part)[i];
  }

  // Calls write(rows) for every block of rows, in each part from last to first.
  template <typename Write>
  void write_backwards(const Write& write) const {
    const std::int64_t row_bytes = d_.channels * static_cast<std::int64_t>(size_of(d_.dtype));
    const std::int64_t block = std::max<std::int64_t>(1, block_bytes / row_bytes);
    for_parts(parts_, [&](int part) {
      const Part mine = part_of(d_.rows, 1, part, parts_);
      for (std::int64_t end = mine.end; end > mine.begin; end -= block)
        write(Part{std::max(mine.begin, end - block), end});
    });
  }

  bool streams(const void* out) const {
    const auto row_bytes = static_cast<std::uintptr_t>(d_.channels) * size_of(d_.dtype);
    return static_cast<std::int64_t>(row_bytes) * d_.rows >= streamed_bytes && row_bytes % 64 == 0 &&
           reinterpret_cast<std::uintptr_t>(out) % 64 == 0;
  }

  // The address of a row in `array`; null if `array` is null.
  const void* at(const void* array, std::int64_t row) const {
    if (!array) return nullptr;
    return static_cast<const char*>(array) + row * d_.channels * static_cast<std::int64_t>(size_of(d_.dtype));
  }
  void* at(void* array, std::int64_t row) const { return const_cast<void*>(at(static_cast<const void*>(array), row)); }

  std::int64_t padded() const { return padded_; }

 private:
  BatchNormDesc d_;
  int parts_;
  std::int64_t padded_;
  int arrays_;
};

class CpuBatchNormForward final : public VectorOp<BatchNormForward> {
 public:
  explicit CpuBatchNormForward(const BatchNormDesc& desc)
      : d_(desc), plan_(desc, 3), kernels_(batch_norm_kernels_for(desc.dtype)) {}

  std::size_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  void run(Stream&, const Args& args) override {
    float* mean = plan_.array(args.workspace, 0);
    float* factor = plan_.array(args.workspace, 1);
    float* offset = plan_.array(args.workspace, 2);
    if (d_.training) {
      compute_statistics(args, mean, factor);
    } else {
      const auto* variance = static_cast<const float*>(args.running_variance);
      std::copy_n(static_cast<const float*>(args.running_mean), d_.channels, mean);
      for (std::int64_t c = 0; c < d_.channels; ++c)
        factor[c] = static_cast<float>(1 / std::sqrt(static_cast<double>(variance[c]) + d_.epsilon));
    }
    const auto* scale = static_cast<const float*>(args.scale);
    for (std::int64_t c = 0; c < d_.channels; ++c) factor[c] *= scale[c];
    std::copy_n(static_cast<const float*>(args.shift), d_.channels, offset);
    for (float* array : {mean, factor, offset}) std::fill(array + d_.channels, array + plan_.padded(), 0.0f);
    const bool stream = plan_.streams(args.y);
    plan_.write_backwards([&](Part rows) {
      kernels_.apply({.rows = rows.end - rows.begin,
                      .channels = d_.channels,
                      .relu = d_.relu,
                      .stream = stream,
                      .x = plan_.at(args.x, rows.begin),
                      .residual = d_.residual ? plan_.at(args.residual, rows.begin) : nullptr,
                      .mean = mean,
                      .factor = factor,
                      .offset = offset,
                      .y = plan_.at(args.y, rows.begin)});
    });
  }

 private:
  // Computes and saves the batch's mean and inverse deviation, and updates the running statistics.
  void compute_statistics(const Args& args, float* mean, float* inverse) {
    // Sums x - shift, where shift is the mean of a few rows: this loses no digits if the mean is large compared with
    // the deviation.
    float* shift = mean;
    std::fill_n(shift, plan_.padded(), 0.0f);
    const std::int64_t samples = std::min(d_.rows, max_samples);
    for (std::int64_t i = 0; i < samples; ++i)
      kernels_.add_row(plan_.at(args.x, i * d_.rows / samples), d_.channels, 1.0f / static_cast<float>(samples), shift);
    plan_.gather(args.workspace, [&](Part rows, double* sums, float* partial) {
      kernels_.statistics({.rows = rows.end - rows.begin,
                           .channels = d_.channels,
                           .x = plan_.at(args.x, rows.begin),
                           .shift = shift,
                           .partial = partial,
                           .sums = sums});
    });
    const double* first = plan_.sums(args.workspace, 0);
    const double* second = first + plan_.padded();
    const auto count = static_cast<double>(d_.rows);
    for (std::int64_t c = 0; c < d_.channels; ++c) {
      const double off = first[c] / count;
      // std::max would drop a NaN.
      const double spread = second[c] / count - off * off, variance = spread < 0 ? 0 : spread;
      const double batch_mean = static_cast<double>(shift[c]) + off;
      mean[c] = static_cast<float>(batch_mean);
      inverse[c] = static_cast<float>(1 / std::sqrt(variance + d_.epsilon));
      static_cast<float*>(args.saved_mean)[c] = mean[c];
      static_cast<float*>(args.saved_inverse_deviation)[c] = inverse[c];
      if (!args.update_running) continue;
      const auto move = [&](void* running, double to) {
        float& value = static_cast<float*>(running)[c];
        value = static_cast<float>((1 - d_.momentum) * static_cast<double>(value) + d_.momentum * to);
      };
      move(args.running_mean, batch_mean);
      move(args.running_variance, variance * count / (count - 1));
    }
  }

  BatchNormDesc d_;
  Plan plan_;
  const BatchNormKernels::Typed& kernels_;
};

class CpuBatchNormBackward final : public VectorOp<BatchNormBackward> {
 public:
  explicit CpuBatchNormBackward(const BatchNormDesc& desc)
      : d_(desc), plan_(desc, 4), kernels_(batch_norm_kernels_for(desc.dtype)) {}

  std::size_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  void run(Stream&, const Args& args) override {
    float* mean = plan_.array(args.workspace, 0);
    float* factor = plan_.array(args.workspace, 1);
    float* slope = plan_.array(args.workspace, 2);
    float* offset = plan_.array(args.workspace, 3);
    std::copy_n(static_cast<const float*>(args.saved_mean), d_.channels, mean);
    std::fill(mean + d_.channels, mean + plan_.padded(), 0.0f);
    void* dresidual = d_.residual ? args.dresidual : nullptr;
    plan_.gather(args.workspace, [&](Part rows, double* sums, float* partial) {
      kernels_.reduce({.rows = rows.end - rows.begin,
                       .channels = d_.channels,
                       .stream = plan_.streams(dresidual) && dresidual != args.dy && dresidual != args.dy_other,
                       .gradient = gradient(args, rows.begin),
                       .x = plan_.at(args.x, rows.begin),
                       .mean = mean,
                       .dresidual = plan_.at(dresidual, rows.begin),
                       .partial = partial,
                       .sums = sums});
    });
    coefficients(args, factor, slope, offset);
    const bool stream = plan_.streams(args.dx) && args.dx != args.dy && args.dx != args.dy_other;
    plan_.write_backwards([&](Part rows) {
      // dresidual already is the gradient after ReLU: one array to read instead of three.
      kernels_.input({.rows = rows.end - rows.begin,
                      .channels = d_.channels,
                      .stream = stream,
                      .gradient = dresidual ? BatchNormGradient{.dy = plan_.at(dresidual, rows.begin)}
                                            : gradient(args, rows.begin),
                      .x = plan_.at(args.x, rows.begin),
                      .mean = mean,
                      .factor = factor,
                      .slope = slope,
                      .offset = offset,
                      .dx = plan_.at(args.dx, rows.begin)});
    });
  }

 private:
  BatchNormGradient gradient(const Args& args, std::int64_t row) const {
    return {.dy = plan_.at(args.dy, row),
            .other = plan_.at(args.dy_other, row),
            .y = d_.relu ? plan_.at(args.y, row) : nullptr};
  }

  // dx = scale inverse (g - sum(g) / n - (x - mean) inverse^2 sum(g (x - mean)) / n)
  void coefficients(const Args& args, float* factor, float* slope, float* offset) const {
    const double* first = plan_.sums(args.workspace, 0);
    const double* second = first + plan_.padded();
    const auto count = static_cast<double>(d_.rows);
    for (std::int64_t c = 0; c < d_.channels; ++c) {
      const auto inverse = static_cast<double>(static_cast<const float*>(args.saved_inverse_deviation)[c]);
      const double both = static_cast<double>(static_cast<const float*>(args.scale)[c]) * inverse;
      factor[c] = static_cast<float>(both);
      slope[c] = static_cast<float>(-both * inverse * inverse * second[c] / count);
      offset[c] = static_cast<float>(-both * first[c] / count);
      const auto put = [&](void* to, double value) {
        float& out = static_cast<float*>(to)[c];
        out = static_cast<float>(d_.accumulate ? static_cast<double>(out) + value : value);
      };
      put(args.dscale, second[c] * inverse);
      put(args.dshift, first[c]);
    }
    for (float* array : {factor, slope, offset}) std::fill(array + d_.channels, array + plan_.padded(), 0.0f);
  }

  BatchNormDesc d_;
  Plan plan_;
  const BatchNormKernels::Typed& kernels_;
};

}  // namespace

template <>
Made<BatchNormForward> make_cpu(const BatchNormDesc& desc) {
  return make_unless<BatchNormForward, CpuBatchNormForward>(type_problem("batch norm", {desc.dtype}), desc);
}

template <>
Made<BatchNormBackward> make_cpu(const BatchNormDesc& desc) {
  if (!desc.training) return Made<BatchNormBackward>::no("batch norm has no backward pass in evaluation");
  return make_unless<BatchNormBackward, CpuBatchNormBackward>(type_problem("batch norm", {desc.dtype}), desc);
}

}  // namespace assay::ops
