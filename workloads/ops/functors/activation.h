// GELU and the SiLU gate of one element, and their derivatives, in float or double.
#pragma once

#include "workloads/ops/functors/math.h"

namespace assay::ops::functors {

// 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), which is x * sigmoid(2u): no cancellation for negative x.
// A finite x gives a finite value.
struct GeluTanh {
  template <typename T>
  static constexpr T slope = T(0.79788456080286535588);  // sqrt(2 / pi)
  template <typename T>
  static constexpr T cubic = T(0.044715);

  template <typename T>
  ASSAY_HOST_DEVICE T operator()(T x) const {
    return x * sigmoid(T(2) * inner(x));
  }

  template <typename T>
  ASSAY_HOST_DEVICE static T inner(T x) {
    const T square = x * x;
    return slope<T> * fma(cubic<T> * square, x, x);
  }
};

struct GeluTanhGradient {
  template <typename T>
  ASSAY_HOST_DEVICE T operator()(T x) const {
    const Sigmoid<T> s = sigmoid_and_slope(T(2) * GeluTanh::inner(x));
    const T square = x * x;
    const T derivative = GeluTanh::slope<T> * fma(T(3) * GeluTanh::cubic<T>, square, T(1));  // derivative of u
    // If the slope is zero, an overflowed derivative would give NaN.
    const T sum = fma(T(2) * s.slope * x, derivative, s.value);
    return s.slope == T(0) ? s.value : sum;
  }
};

// x * normal CDF(x).
struct GeluErf {
  template <typename T>
  ASSAY_HOST_DEVICE T operator()(T x) const {
    return x * normal(x).below;
  }
};

struct GeluErfGradient {
  template <typename T>
  ASSAY_HOST_DEVICE T operator()(T x) const {
    const Normal<T> n = normal(x);
    return fma(x, n.density, n.below);
  }
};

// silu(gate) * up, silu(x) = x * sigmoid(x).
struct SiluGate {
  template <typename T>
  ASSAY_HOST_DEVICE T operator()(T gate, T up) const {
    return gate * sigmoid(gate) * up;
  }
};

template <typename T>
struct SiluGateGradients {
  T gate;
  T up;
};

struct SiluGateGradient {
  template <typename T>
  ASSAY_HOST_DEVICE SiluGateGradients<T> operator()(T gate, T up, T dy) const {
    const Sigmoid<T> s = sigmoid_and_slope(gate);
    return {dy * up * fma(gate, s.slope, s.value), dy * gate * s.value};
  }
};

}  // namespace assay::ops::functors
