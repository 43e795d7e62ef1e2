// Element-wise maths: errors against libm in double, edge cases, and bitwise reproducibility.
#include "workloads/ops/functors/activation.h"
#include "workloads/ops/functors/math.h"
#include "workloads/ops/functors/optimizer.h"
#include "workloads/ops/functors/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace assay::ops::functors {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Every `step`-th float of both signs with magnitude in [lowest, highest].
template <typename Check>
void for_each_float(float lowest, float highest, std::uint32_t step, Check check) {
  const auto last = std::bit_cast<std::uint32_t>(highest);
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(lowest); bits <= last; bits += step) {
    check(std::bit_cast<float>(bits));
    check(-std::bit_cast<float>(bits));
  }
}

double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  const float size = std::max(std::fabs(rounded), std::numeric_limits<float>::min());
  const double ulp = static_cast<double>(std::nextafter(size, infinity)) - static_cast<double>(size);
  return std::fabs(static_cast<double>(got) - want) / ulp;
}

template <typename Mine, typename Exact>
double worst_ulps(float lowest, float highest, Mine mine, Exact exact) {
  double worst = 0;
  for_each_float(lowest, highest, 997, [&](float x) {
    const double error = ulps(mine(x), exact(static_cast<double>(x)));
    if (error > worst) worst = error;
  });
  return worst;
}

TEST(FunctorMath, ExpIsWithinUlpsOfLibm) {
  EXPECT_LE(worst_ulps(
                1e-30f, 88.7f, [](float x) { return exp(x); }, [](double x) { return std::exp(x); }),
            1.1);
  // Subnormal results lose bits; the absolute error stays below the smallest subnormal.
  for (float x = -87.0f; x > -104.0f; x -= 0.01f)
    EXPECT_LE(std::fabs(static_cast<double>(exp(x)) - std::exp(static_cast<double>(x))),
              std::max(1.5e-45, 1.1 * 0x1p-23 * std::exp(static_cast<double>(x))))
        << x;
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-200.0f), 0.0f);
  EXPECT_EQ(exp(-infinity), 0.0f);
  EXPECT_EQ(exp(89.0f), infinity);
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(exp(std::nanf(""))));
}

TEST(FunctorMath, TanhIsWithinUlpsOfLibm) {
  EXPECT_LE(worst_ulps(
                1e-30f, 100.0f, [](float x) { return tanh(x); }, [](double x) { return std::tanh(x); }),
            3.0);
  EXPECT_EQ(tanh(infinity), 1.0f);
  EXPECT_EQ(tanh(-infinity), -1.0f);
  EXPECT_TRUE(std::signbit(tanh(-0.0f)));
  EXPECT_TRUE(std::isnan(tanh(std::nanf(""))));
}

TEST(FunctorMath, NormalDistributionHasNoCancellation) {
  for (float x = -3.0f; x < 9.0f; x += 0.0037f) {
    const Normal<double> exact = normal(static_cast<double>(x));
    const Normal<float> mine = normal(x);
    EXPECT_NEAR(static_cast<double>(mine.below), exact.below, 5e-7 * exact.below) << x;
    EXPECT_NEAR(static_cast<double>(mine.density), exact.density, 1e-6 * exact.density + 1e-12) << x;
  }
  EXPECT_EQ(normal(infinity).below, 1.0f);
  EXPECT_EQ(normal(-infinity).below, 0.0f);
  EXPECT_TRUE(std::isnan(normal(std::nanf("")).below));
}

TEST(FunctorMath, ExpOfNegativeFollowsExp) {
  for (float x = -87.2f; x <= 0.0f; x += 0.0037f)
    EXPECT_LE(ulps(exp_of_negative(x), std::exp(static_cast<double>(x))), 1.1) << x;
  EXPECT_EQ(exp_of_negative(-88.0f), 0.0f);
  EXPECT_EQ(exp_of_negative(-infinity), 0.0f);
  EXPECT_TRUE(std::isnan(exp_of_negative(std::nanf(""))));
}

TEST(FunctorMath, SigmoidHasNoCancellation) {
  for (float x = -80.0f; x < 80.0f; x += 0.037f) {
    const double e = std::exp(-std::fabs(static_cast<double>(x)));
    const Sigmoid<float> s = sigmoid_and_slope(x);
    EXPECT_LE(ulps(s.slope, e / ((1 + e) * (1 + e))), 4) << x;
    EXPECT_LE(ulps(s.value, x < 0 ? e / (1 + e) : 1 / (1 + e)), 3) << x;
    EXPECT_LE(ulps(sigmoid(x), x < 0 ? e / (1 + e) : 1 / (1 + e)), 3) << x;
  }
}

// Fails on a platform whose bits differ.
TEST(FunctorMath, TheSameBitsEverywhere) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto add = [&](float x) { hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211ull; };
  for_each_float(1e-10f, 120.0f, 65521, [&](float x) {
    add(exp(x));
    add(tanh(x));
    add(exp_of_negative(-std::fabs(x)));
    add(normal(x).below);
    add(GeluTanh()(x));
    add(GeluTanhGradient()(x));
    add(GeluErf()(x));
    add(GeluErfGradient()(x));
    add(SiluGate()(x, 0.7f));
    add(SiluGateGradient()(x, 0.7f, 1.3f).gate);
  });
  EXPECT_EQ(hash, 16921963374776748507ull);
}

// A vectorised loop gives the same as single elements.
TEST(FunctorMath, LoopsAgreeWithSingleElements) {
  std::vector<float> x;
  for_each_float(1e-6f, 120.0f, 99991, [&](float v) { x.push_back(v); });
  std::vector<float> a(x.size()), b(x.size()), c(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) a[i] = GeluErf()(x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) b[i] = tanh(x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) c[i] = GeluTanhGradient()(x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    volatile float single = x[i];
    const float one = single;
    ASSERT_EQ(a[i], GeluErf()(one));
    ASSERT_EQ(b[i], tanh(one));
    ASSERT_EQ(c[i], GeluTanhGradient()(one));
  }
}

TEST(ActivationFunctors, AgreeWithTheirDefinitionsInDouble) {
  const double root_2_pi = std::sqrt(2 / std::acos(-1.0));
  for (double x = -12; x < 12; x += 0.0173) {
    const double u = root_2_pi * (x + 0.044715 * x * x * x);
    EXPECT_NEAR(GeluTanh()(x), 0.5 * x * (1 + std::tanh(u)), 1e-14);
    EXPECT_NEAR(GeluErf()(x), 0.5 * x * (1 + std::erf(x / std::sqrt(2))), 1e-14);
    EXPECT_NEAR(SiluGate()(x, 1.5), 1.5 * x / (1 + std::exp(-x)), 1e-14);
    const double h = 1e-5;
    EXPECT_NEAR(GeluTanhGradient()(x), (GeluTanh()(x + h) - GeluTanh()(x - h)) / (2 * h), 1e-8);
    EXPECT_NEAR(GeluErfGradient()(x), (GeluErf()(x + h) - GeluErf()(x - h)) / (2 * h), 1e-8);
    const auto gradients = SiluGateGradient()(x, 1.5, 0.3);
    EXPECT_NEAR(gradients.gate, 0.3 * (SiluGate()(x + h, 1.5) - SiluGate()(x - h, 1.5)) / (2 * h), 1e-8);
    EXPECT_NEAR(gradients.up, 0.3 * SiluGate()(x, 1.0), 1e-12);
  }
}

TEST(ActivationFunctors, FloatFollowsDouble) {
  for (double x = -20; x < 20; x += 0.0073) {
    const auto f = static_cast<float>(x);
    const auto d = static_cast<double>(f);
    const double limit = 4 * 0x1p-24 * std::max(1.0, std::fabs(d));
    EXPECT_NEAR(static_cast<double>(GeluTanh()(f)), GeluTanh()(d), limit);
    EXPECT_NEAR(static_cast<double>(GeluTanhGradient()(f)), GeluTanhGradient()(d), 4 * limit);
    EXPECT_NEAR(static_cast<double>(GeluErf()(f)), GeluErf()(d), limit);
    EXPECT_NEAR(static_cast<double>(GeluErfGradient()(f)), GeluErfGradient()(d), 4 * limit);
    EXPECT_NEAR(static_cast<double>(SiluGate()(f, 1.0f)), SiluGate()(d, 1.0), limit);
  }
}

TEST(ActivationFunctors, LargeInputsStayFinite) {
  for (const float x : {1e4f, 1e10f, 1e20f, 3e38f}) {
    EXPECT_EQ(GeluTanh()(x), x);
    EXPECT_EQ(GeluTanh()(-x), 0.0f);
    EXPECT_EQ(GeluTanhGradient()(x), 1.0f);
    EXPECT_EQ(GeluTanhGradient()(-x), 0.0f);
    EXPECT_EQ(GeluErf()(x), x);
    EXPECT_EQ(GeluErf()(-x), 0.0f);
    EXPECT_EQ(GeluErfGradient()(x), 1.0f);
    EXPECT_EQ(GeluErfGradient()(-x), 0.0f);
    EXPECT_EQ(SiluGate()(x, 1.0f), x);
    EXPECT_EQ(SiluGate()(-x, 1.0f), 0.0f);
    EXPECT_EQ(SiluGateGradient()(-x, 1.0f, 1.0f).gate, 0.0f);
  }
  EXPECT_TRUE(std::isnan(GeluTanhGradient()(std::nanf(""))));
}

TEST(OptimizerFunctors, AdamwFollowsThePaper) {
  OptimizerDesc desc;
  desc.beta1 = 0.8;
  desc.beta2 = 0.95;
  desc.epsilon = 1e-3;
  double w = 0.7, m = 0, v = 0, w2 = 0.7, m2 = 0, v2 = 0;
  for (int step = 1; step <= 5; ++step) {
    StepState state;
    state.step = step;
    state.learning_rate = 0.0625f;
    state.coefficient = 0.5f;
    const double gradient = 0.3 * step - 0.7, decay = 0.25;
    const AdamwUpdate<double> update(desc, state);
    update(w, m, v, gradient, update.keep(decay));
    const double g = 0.5 * gradient;
    m2 = 0.8 * m2 + 0.2 * g;
    v2 = 0.95 * v2 + 0.05 * g * g;
    w2 -= 0.0625 * decay * w2;
    w2 -= 0.0625 * (m2 / (1 - std::pow(0.8, step))) / (std::sqrt(v2 / (1 - std::pow(0.95, step))) + 1e-3);
    EXPECT_NEAR(w, w2, 1e-14);
    EXPECT_NEAR(m, m2, 1e-15);
    EXPECT_NEAR(v, v2, 1e-15);
  }
}

TEST(OptimizerFunctors, SgdFollowsItsFormula) {
  OptimizerDesc desc;
  desc.momentum = 0.75;
  StepState state;
  state.learning_rate = 0.125f;
  state.coefficient = 0.25f;
  double w = 0.5, v = 0.25;
  SgdUpdate<double>(desc, state)(w, v, 2.0, 0.5);
  EXPECT_DOUBLE_EQ(v, 0.75 * 0.25 + (2.0 * 0.25 + 0.5 * 0.5));
  EXPECT_DOUBLE_EQ(w, 0.5 - 0.125 * v);
}

TEST(RotaryFunctor, RotatesAndRotatesBack) {
  double x = 0.3, y = -1.1;
  Rotate()(x, y, std::cos(0.4), std::sin(0.4));
  EXPECT_NEAR(x, 0.3 * std::cos(0.4) + 1.1 * std::sin(0.4), 1e-15);
  EXPECT_NEAR(y, -1.1 * std::cos(0.4) + 0.3 * std::sin(0.4), 1e-15);
  Rotate()(x, y, std::cos(0.4), -std::sin(0.4));
  EXPECT_NEAR(x, 0.3, 1e-15);
  EXPECT_NEAR(y, -1.1, 1e-15);
}

}  // namespace
}  // namespace assay::ops::functors
