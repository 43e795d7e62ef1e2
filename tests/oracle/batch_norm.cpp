// The oracle's batch norm with residual and ReLU (Ioffe & Szegedy 2015).
#include "tests/oracle/reference_op.h"

#include <cmath>

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceBatchNormForward final : public ReferenceOp<BatchNormForward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* x = static_cast<const T*>(args.x);
    const auto* residual = static_cast<const T*>(args.residual);
    const auto* scale = static_cast<const S*>(args.scale);
    const auto* shift = static_cast<const S*>(args.shift);
    auto* y = static_cast<T*>(args.y);
    for (std::int64_t c = 0; c < d_.channels; ++c) {
      const Moments moments = d_.training ? of_batch(x, c, args) : of_running(c, args);
      for (std::int64_t r = 0; r < d_.rows; ++r) {
        const std::int64_t i = r * d_.channels + c;
        double value = widen(scale[c]) * (widen(x[i]) - moments.mean) * moments.inverse_deviation + widen(shift[c]);
        if (d_.residual) value += widen(residual[i]);
        y[i] = narrow<T>(d_.relu && value < 0 ? 0 : value);  // NaN stays
      }
    }
  }

 private:
  using S = Statistic<T>;
  struct Moments {
    double mean, inverse_deviation;
  };

  Moments of_running(std::int64_t c, const Args& args) const {
    return {widen(static_cast<const S*>(args.running_mean)[c]),
            1 / std::sqrt(widen(static_cast<const S*>(args.running_variance)[c]) + d_.epsilon)};
  }

  Moments of_batch(const T* x, std::int64_t c, const Args& args) const {
    const auto rows = static_cast<double>(d_.rows);
    double mean = 0, variance = 0;
    for (std::int64_t r = 0; r < d_.rows; ++r) mean += widen(x[r * d_.channels + c]);
    mean /= rows;
    for (std::int64_t r = 0; r < d_.rows; ++r) variance += std::pow(widen(x[r * d_.channels + c]) - mean, 2);
    variance /= rows;
    const double inverse_deviation = 1 / std::sqrt(variance + d_.epsilon);
    static_cast<S*>(args.saved_mean)[c] = narrow<S>(mean);
    static_cast<S*>(args.saved_inverse_deviation)[c] = narrow<S>(inverse_deviation);
    if (args.update_running) {
      S& running_mean = static_cast<S*>(args.running_mean)[c];
      S& running_variance = static_cast<S*>(args.running_variance)[c];
      running_mean = narrow<S>((1 - d_.momentum) * widen(running_mean) + d_.momentum * mean);
      running_variance =
          narrow<S>((1 - d_.momentum) * widen(running_variance) + d_.momentum * variance * rows / (rows - 1));
    }
    return {mean, inverse_deviation};
  }
};

template <typename T>
class ReferenceBatchNormBackward final : public ReferenceOp<BatchNormBackward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* dy = static_cast<const T*>(args.dy);
    const auto* other = static_cast<const T*>(args.dy_other);
    const auto* x = static_cast<const T*>(args.x);
    const auto* y = static_cast<const T*>(args.y);
    const auto rows = static_cast<double>(d_.rows);
    for (std::int64_t c = 0; c < d_.channels; ++c) {
      const double mean = widen(static_cast<const S*>(args.saved_mean)[c]);
      const double inverse = widen(static_cast<const S*>(args.saved_inverse_deviation)[c]);
      const double scale = widen(static_cast<const S*>(args.scale)[c]);
      const auto passed = [&](std::int64_t i) {
        if (d_.relu && !(widen(y[i]) > 0)) return 0.0;
        return widen(dy[i]) + (other ? widen(other[i]) : 0);
      };
      double sum = 0, product = 0;  // of the gradient, and of the gradient times the normalised input
      for (std::int64_t r = 0; r < d_.rows; ++r) {
        const std::int64_t i = r * d_.channels + c;
        sum += passed(i);
        product += passed(i) * (widen(x[i]) - mean) * inverse;
      }
      put(static_cast<S*>(args.dshift)[c], sum, d_.accumulate);
      put(static_cast<S*>(args.dscale)[c], product, d_.accumulate);
      for (std::int64_t r = 0; r < d_.rows; ++r) {
        const std::int64_t i = r * d_.channels + c;
        const double gradient = passed(i);
        const double normalised = (widen(x[i]) - mean) * inverse;
        if (d_.residual) static_cast<T*>(args.dresidual)[i] = narrow<T>(gradient);
        static_cast<T*>(args.dx)[i] =
            narrow<T>(scale * inverse * (gradient - sum / rows - normalised * product / rows));
      }
    }
  }

 private:
  using S = Statistic<T>;
};

}  // namespace

template <>
Made<BatchNormForward> make_reference(const BatchNormDesc& d) {
  return by_type<BatchNormForward, ReferenceBatchNormForward>(d.dtype, d);
}

template <>
Made<BatchNormBackward> make_reference(const BatchNormDesc& d) {
  if (!d.training) return Made<BatchNormBackward>::no("batch norm has no backward pass in evaluation");
  return by_type<BatchNormBackward, ReferenceBatchNormBackward>(d.dtype, d);
}

}  // namespace assay::ops::reference
