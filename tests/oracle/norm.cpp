// The oracle's layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019).
#include "tests/oracle/reference_op.h"

#include <cmath>

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceNormForward final : public ReferenceOp<NormForward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* weight = static_cast<const S*>(args.weight);
    const auto* bias = static_cast<const S*>(args.bias);
    const auto columns = static_cast<double>(d_.columns);
    const bool centred = d_.kind == NormKind::layer;
    for (std::int64_t r = 0; r < d_.rows; ++r) {
      const T* row = summed(r * d_.columns, args);
      double mean = 0, variance = 0;
      if (centred)
        for (std::int64_t c = 0; c < d_.columns; ++c) mean += widen(row[c]) / columns;
      for (std::int64_t c = 0; c < d_.columns; ++c) variance += std::pow(widen(row[c]) - mean, 2) / columns;
      const double inverse = 1 / std::sqrt(variance + d_.epsilon);
      for (std::int64_t c = 0; c < d_.columns; ++c) {
        double value = widen(weight[c]) * (widen(row[c]) - mean) * inverse;
        if (centred && d_.bias) value += widen(bias[c]);
        static_cast<T*>(args.y)[r * d_.columns + c] = narrow<T>(value);
      }
      if (centred) static_cast<S*>(args.saved_mean)[r] = narrow<S>(mean);
      static_cast<S*>(args.saved_inverse_deviation)[r] = narrow<S>(inverse);
    }
  }

 private:
  using S = Statistic<T>;

  // The row that is normalised: x, or what was stored of x + residual.
  const T* summed(std::int64_t begin, const Args& args) const {
    const T* x = static_cast<const T*>(args.x) + begin;
    if (!d_.residual) return x;
    const T* residual = static_cast<const T*>(args.residual) + begin;
    T* sum = static_cast<T*>(args.sum) + begin;
    for (std::int64_t c = 0; c < d_.columns; ++c) sum[c] = narrow<T>(widen(x[c]) + widen(residual[c]));
    return sum;
  }
};

template <typename T>
class ReferenceNormBackward final : public ReferenceOp<NormBackward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* dy = static_cast<const T*>(args.dy);
    const auto* dsum = static_cast<const T*>(args.dsum);
    const auto* weight = static_cast<const S*>(args.weight);
    parameters(dy, args);  // first: dx may be dy
    const auto columns = static_cast<double>(d_.columns);
    for (std::int64_t r = 0; r < d_.rows; ++r) {
      const double inverse = widen(static_cast<const S*>(args.saved_inverse_deviation)[r]);
      double mean_gradient = 0, mean_product = 0;  // of weight * dy, and of it times the normalised row
      for (std::int64_t c = 0; c < d_.columns; ++c) {
        const double gradient = widen(weight[c]) * widen(dy[r * d_.columns + c]);
        mean_gradient += gradient / columns;
        mean_product += gradient * normalised(r, c, args) / columns;
      }
      if (d_.kind == NormKind::rms) mean_gradient = 0;
      for (std::int64_t c = 0; c < d_.columns; ++c) {
        const std::int64_t i = r * d_.columns + c;
        const double gradient = widen(weight[c]) * widen(dy[i]);
        double value = inverse * (gradient - mean_gradient - normalised(r, c, args) * mean_product);
        if (dsum) value += widen(dsum[i]);
        static_cast<T*>(args.dx)[i] = narrow<T>(value);
      }
    }
  }

 private:
  using S = Statistic<T>;

  double normalised(std::int64_t r, std::int64_t c, const Args& args) const {
    const double mean = d_.kind == NormKind::layer ? widen(static_cast<const S*>(args.saved_mean)[r]) : 0;
    const double value = widen(static_cast<const T*>(args.sum)[r * d_.columns + c]);
    return (value - mean) * widen(static_cast<const S*>(args.saved_inverse_deviation)[r]);
  }

  void parameters(const T* dy, const Args& args) const {
    for (std::int64_t c = 0; c < d_.columns; ++c) {
      double weight = 0, bias = 0;
      for (std::int64_t r = 0; r < d_.rows; ++r) {
        const double gradient = widen(dy[r * d_.columns + c]);
        weight += gradient * normalised(r, c, args);
        bias += gradient;
      }
      put(static_cast<S*>(args.dweight)[c], weight, d_.accumulate);
      if (d_.kind == NormKind::layer && d_.bias) put(static_cast<S*>(args.dbias)[c], bias, d_.accumulate);
    }
  }
};

}  // namespace

template <>
Made<NormForward> make_reference(const NormDesc& d) {
  return by_type<NormForward, ReferenceNormForward>(d.dtype, d);
}

template <>
Made<NormBackward> make_reference(const NormDesc& d) {
  return by_type<NormBackward, ReferenceNormBackward>(d.dtype, d);
}

}  // namespace assay::ops::reference
