// The oracle's activations: the shared functors in double.
#include "workloads/ops/functors/activation.h"

#include "tests/oracle/reference_op.h"

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceActivationForward final : public ReferenceOp<ActivationForward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* x = static_cast<const T*>(args.x);
    auto* y = static_cast<T*>(args.y);
    for (std::int64_t r = 0; r < d_.rows; ++r)
      for (std::int64_t c = 0; c < d_.columns; ++c) {
        const std::int64_t i = r * d_.columns + c, gate = 2 * r * d_.columns + c;
        switch (d_.kind) {
          case ActivationKind::gelu_tanh: y[i] = narrow<T>(functors::GeluTanh()(widen(x[i]))); break;
          case ActivationKind::gelu_erf: y[i] = narrow<T>(functors::GeluErf()(widen(x[i]))); break;
          case ActivationKind::silu_gate:
            y[i] = narrow<T>(functors::SiluGate()(widen(x[gate]), widen(x[gate + d_.columns])));
            break;
        }
      }
  }
};

template <typename T>
class ReferenceActivationBackward final : public ReferenceOp<ActivationBackward> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* x = static_cast<const T*>(args.x);
    const auto* dy = static_cast<const T*>(args.dy);
    auto* dx = static_cast<T*>(args.dx);
    for (std::int64_t r = 0; r < d_.rows; ++r)
      for (std::int64_t c = 0; c < d_.columns; ++c) {
        const std::int64_t i = r * d_.columns + c, gate = 2 * r * d_.columns + c, up = gate + d_.columns;
        const double gradient = widen(dy[i]);
        switch (d_.kind) {
          case ActivationKind::gelu_tanh:
            dx[i] = narrow<T>(gradient * functors::GeluTanhGradient()(widen(x[i])));
            break;
          case ActivationKind::gelu_erf: dx[i] = narrow<T>(gradient * functors::GeluErfGradient()(widen(x[i]))); break;
          case ActivationKind::silu_gate: {
            const auto both = functors::SiluGateGradient()(widen(x[gate]), widen(x[up]), gradient);
            dx[gate] = narrow<T>(both.gate);
            dx[up] = narrow<T>(both.up);
            break;
          }
        }
      }
  }
};

}  // namespace

template <>
Made<ActivationForward> make_reference(const ActivationDesc& d) {
  return by_type<ActivationForward, ReferenceActivationForward>(d.dtype, d);
}

template <>
Made<ActivationBackward> make_reference(const ActivationDesc& d) {
  return by_type<ActivationBackward, ReferenceActivationBackward>(d.dtype, d);
}

}  // namespace assay::ops::reference
