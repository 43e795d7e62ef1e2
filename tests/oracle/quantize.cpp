// The oracle's rounding to 8-bit floats, and the update of their scales.
#include "tests/oracle/reference_op.h"
#include "workloads/ops/functors/scale.h"

#include <algorithm>

namespace assay::ops::reference {

namespace {

class ReferenceQuantize final : public ReferenceOp<Quantize> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const Array x(args.x, d_.from), y(args.y, d_.to), y_transposed(args.y_transposed, d_.to);
    float amax = args.amax ? *args.amax : 0;
    for (std::int64_t i = 0; i < d_.rows; ++i)
      for (std::int64_t j = 0; j < d_.columns; ++j) {
        const auto value = static_cast<float>(x[i * d_.columns + j]);
        if (!(std::fabs(value) <= amax)) amax = std::isnan(amax) ? amax : std::fabs(value);
        const auto scaled = static_cast<double>(value * *args.scale);
        if (d_.plain) y.set(i * d_.columns + j, scaled);
        if (d_.transposed) y_transposed.set(j * d_.rows + i, scaled);
      }
    if (args.amax) *args.amax = amax;
    for (std::int64_t j = 0; d_.column_sums && j < d_.columns; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < d_.rows; ++i) sum += x[i * d_.columns + j];
      put(args.column_sums[j], sum, d_.accumulate);
    }
  }
};

class ReferenceScaleUpdate final : public ReferenceOp<ScaleUpdate> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    for (std::int64_t i = 0; i < d_.tensors; ++i) {
      float* history = args.history + i * d_.length;
      std::copy(history + 1, history + d_.length, history);
      history[d_.length - 1] = functors::DelayedScale::history_entry(args.amax[i]);
      const float amax = *std::max_element(history, history + d_.length);
      args.scale[i] = functors::DelayedScale()(amax, args.largest[i], d_.margin);
      args.inverse[i] = 1.0f / args.scale[i];
      if (args.state && functors::DelayedScale::overflowed(args.amax[i])) args.state->found_infinity = 1;
    }
  }
};

}  // namespace

template <>
Made<Quantize> make_reference(const QuantizeDesc& d) {
  return std::unique_ptr<Quantize>(std::make_unique<ReferenceQuantize>(d));
}

template <>
Made<ScaleUpdate> make_reference(const ScaleUpdateDesc& d) {
  return std::unique_ptr<ScaleUpdate>(std::make_unique<ReferenceScaleUpdate>(d));
}

}  // namespace assay::ops::reference
