// Amdahl, alpha-beta and predictions: fits recover known coefficients and refute wrong algorithms.
#include "reports/scaling/alpha_beta.h"
#include "reports/scaling/amdahl.h"
#include "reports/scaling/prediction.h"
#include "tests/unit/reports/scaling/records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

namespace assay::report::scaling {
namespace {

TEST(Amdahl, RecoversTheSerialFraction) {
  const auto fit = fit_amdahl(series_of(Mode::strong, {1, 2, 4, 8}, amdahl_time));
  EXPECT_NEAR(fit->serial, 0.2, 1e-8);
  EXPECT_NEAR(fit->time, 10, 1e-7);
  EXPECT_LT(fit->rms, 1e-8);
  // Without one rank, and no powers of two.
  EXPECT_NEAR(fit_amdahl(series_of(Mode::strong, {2, 3, 7}, amdahl_time))->serial, 0.2, 1e-8);
  EXPECT_FALSE(fit_amdahl(series_of(Mode::weak, {1, 2, 4}, amdahl_time)));
}

// T(1) = 10, T(2) = 6: s = 2 T(2) / T(1) - 1 = 0.2, ds = 1.2 (d ln T(2) - d ln T(1)). With a factor of 1.01 either way
// the half width is 1.2 x sqrt(2) x ln 1.01 = 0.0168860.
TEST(Amdahl, TwoSizesCarryTheirIntervals) {
  const auto fit = fit_amdahl(series_of(Mode::strong, {1, 2}, amdahl_time, 1.01));
  EXPECT_NEAR(fit->serial, 0.2, 1e-8);
  EXPECT_EQ(fit->freedom, 0);
  EXPECT_NEAR(fit->interval->low, 0.2 - 0.0168860, 1e-6);
  EXPECT_NEAR(fit->interval->high, 0.2 + 0.0168860, 1e-6);
  EXPECT_FALSE(fit_amdahl(series_of(Mode::strong, {1, 2}, amdahl_time))->interval);
}

TEST(Amdahl, StaysBetweenZeroAndOne) {
  const auto faster = fit_amdahl(series_of(
      Mode::strong, {1, 2, 4}, [](double n) { return 10 / (n * n); }, 1.01));
  EXPECT_EQ(faster->serial, 0);
  EXPECT_EQ(faster->interval->low, 0);
  const auto slower = fit_amdahl(series_of(
      Mode::strong, {1, 2, 4}, [](double n) { return n; }, 1.01));
  EXPECT_EQ(slower->serial, 1);
  EXPECT_EQ(slower->interval->high, 1);
}

CollectiveSeries all_reduce(const std::vector<int>& worlds, const std::function<double(double, double)>& time,
                            double noise = 0) {
  CollectiveSeries series;
  series.op = "all_reduce";
  int i = 0;
  for (const int n : worlds) {
    MessageLine line{n, {}};
    for (const double bytes : {64.0, 4096.0, 65536.0, 1048576.0, 16777216.0}) {
      const double factor = 1 + noise * ((i++ % 3) - 1);  // -, 0, +, -, ...
      line.points.push_back({bytes, {time(n, bytes) * factor, {}}, {}});
    }
    series.lines.push_back(line);
  }
  return series;
}

constexpr double alpha = 2e-6, link = 1e10;
double ring_time(double n, double bytes) { return 2 * (n - 1) * alpha + 2 * (n - 1) / n * bytes / link; }
double tree_time(double n, double bytes) { return 2 * std::ceil(std::log2(n)) * alpha + 2 * bytes / link; }

std::vector<FormFit> forms_over(const CollectiveSeries& series) { return fit_forms(series.op, series.lines); }

const FormFit& form_named(const std::vector<FormFit>& fits, const std::string& name) {
  for (const FormFit& fit : fits)
    if (fit.form.name == name) return fit;
  throw std::runtime_error("no form " + name);
}

// A ring of 4: A = 6 x 2 us = 12 us, G = 1.5 / 1e10, so 1 / G = 6.667 GB/s and n1/2 = 12e-6 / 1.5e-10 = 80,000 B.
TEST(AlphaBeta, LineOfOneWorldSizeByHand) {
  const auto fit = fit_line(all_reduce({4}, ring_time).lines[0]);
  EXPECT_NEAR(fit->latency->value, 12e-6, 1e-13);
  EXPECT_NEAR(fit->bandwidth->value, 1e10 / 1.5, 10);
  EXPECT_NEAR(fit->half_size->value, 80000, 0.01);
}

TEST(AlphaBeta, RingIsFoundAndTreeRefuted) {
  for (const double noise : {0.0, 0.02}) {
    const auto fits = forms_over(all_reduce({2, 4, 8}, ring_time, noise));
    const FormFit& ring = form_named(fits, "ring");
    EXPECT_EQ(ring.verdict, Verdict::fits_best);
    EXPECT_NEAR(ring.alpha->value, alpha, alpha * (1e-6 + noise));
    EXPECT_NEAR(ring.bandwidth->value, link, link * (1e-6 + noise));
    EXPECT_EQ(form_named(fits, "tree").verdict, Verdict::refuted);
    EXPECT_EQ(form_named(fits, "binomial tree").verdict, Verdict::refuted);
  }
}

TEST(AlphaBeta, TreeIsFoundAndRingRefuted) {
  for (const double noise : {0.0, 0.02}) {
    const auto fits = forms_over(all_reduce({2, 3, 6, 8}, tree_time, noise));
    const FormFit& tree = form_named(fits, "tree");
    EXPECT_EQ(tree.verdict, Verdict::fits_best);
    EXPECT_NEAR(tree.alpha->value, alpha, alpha * (1e-6 + noise));
    EXPECT_NEAR(tree.bandwidth->value, link, link * (1e-6 + noise));
    EXPECT_EQ(form_named(fits, "ring").verdict, Verdict::refuted);
  }
}

TEST(AlphaBeta, OneWorldSizeCannotDistinguishThem) {
  for (const FormFit& fit : forms_over(all_reduce({4}, ring_time, 0.02))) EXPECT_EQ(fit.verdict, Verdict::cannot_tell);
}

// Fits no form: the cost per byte falls with the size.
TEST(AlphaBeta, UnexplainedFiguresRefuteAllForms) {
  const auto odd = [](double n, double bytes) { return 1e-7 * n * std::sqrt(bytes); };
  for (const FormFit& fit : forms_over(all_reduce({2, 4, 8}, odd))) EXPECT_EQ(fit.verdict, Verdict::refuted);
}

TEST(AlphaBeta, CoefficientsThatAreNotDeterminedAreAbsent) {
  const auto flat = fit_line(all_reduce({4}, [](double, double) { return 5e-6; }).lines[0]);
  EXPECT_NEAR(flat->latency->value, 5e-6, 1e-12);
  EXPECT_FALSE(flat->bandwidth);
  EXPECT_FALSE(flat->half_size);
  const auto steep = fit_line(all_reduce({4}, [](double, double bytes) { return bytes * 1e-9; }).lines[0]);
  EXPECT_FALSE(steep->latency);
  EXPECT_NEAR(steep->bandwidth->value, 1e9, 1);
  MessageLine two{2, {{8, {1e-6, {}}, {}}, {64, {2e-6, {}}, {}}}};
  EXPECT_FALSE(fit_line(two));
}

// Eager up to 4 KiB: 1 us + S / 10 GB/s; then another algorithm: 20 us + S / 2 GB/s. No fit spans both.
TEST(AlphaBeta, SplitsWhereTheAlgorithmChanges) {
  for (const double noise : {0.0, 0.02}) {
    MessageLine line{2, {}};
    for (int i = 3; i <= 24; ++i) {
      const double bytes = std::ldexp(1, i);
      const double time = bytes <= 4096 ? 1e-6 + bytes / 1e10 : 20e-6 + bytes / 2e9;
      line.points.push_back({bytes, {time * (1 + noise * (i % 3 - 1)), {}}, {}});
    }
    const auto pieces = split_by_size(line);
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(pieces[0].points.back().bytes, 4096);
    EXPECT_NEAR(fit_line(pieces[0])->latency->value, 1e-6, 1e-6 * (1e-6 + noise));
    EXPECT_NEAR(fit_line(pieces[1])->bandwidth->value, 2e9, 2e9 * (1e-6 + noise));
  }
}

TEST(AlphaBeta, ALineThatFitsIsNotSplit) {
  EXPECT_EQ(split_by_size(all_reduce({4}, ring_time, 0.05).lines[0]).size(), 1u);
  MessageLine noisy{2, {}};
  const double factors[] = {1.4, 0.7, 1.1, 0.8, 1.3, 0.9, 0.7, 1.4, 1.2, 0.8, 1.0, 0.7};
  for (int i = 0; i < 12; ++i) {
    const double bytes = std::ldexp(1, 2 * i + 3);
    noisy.points.push_back({bytes, {factors[i] * (1e-6 + bytes / 1e10), {}}, {}});
  }
  EXPECT_EQ(split_by_size(noisy).size(), 1u);
}

TEST(AlphaBeta, EveryOpOfTheSuiteHasForms) {
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"})
    EXPECT_FALSE(forms_of(op).empty()) << op;
  EXPECT_TRUE(forms_of("gossip").empty());
}

}  // namespace
}  // namespace assay::report::scaling
