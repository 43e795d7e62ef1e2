// Levenberg-Marquardt on the logarithms of figures and coefficients; vanishing coefficients drop out of the sum.
#include "reports/scaling/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::report::scaling {

namespace {

using Matrix = std::array<Terms, max_terms>;
using Mask = std::array<bool, max_terms>;

constexpr double infinite = std::numeric_limits<double>::infinity();

// Solves the first n rows of m x = v, m symmetric, by Cholesky; absent unless m is positive definite.
std::optional<Terms> solve(Matrix m, Terms v, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const double scale = m[j][j];
    for (std::size_t k = 0; k < j; ++k) m[j][j] -= m[j][k] * m[j][k];
    if (!(m[j][j] > 1e-13 * scale) || !std::isfinite(m[j][j])) return std::nullopt;
    m[j][j] = std::sqrt(m[j][j]);
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) m[i][j] -= m[i][k] * m[j][k];
      m[i][j] /= m[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) v[i] -= m[i][k] * v[k];
    v[i] /= m[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) v[i] -= m[k][i] * v[k];
    v[i] /= m[i][i];
  }
  return v;
}

double sum_of(const Terms& c, const Terms& x, std::size_t terms) {
  double sum = 0;
  for (std::size_t j = 0; j < terms; ++j) sum += c[j] * x[j];
  return sum;
}

// Sum of squared relative residuals; infinite if a fitted value is not positive.
double cost_of(std::span<const Observation> all, const Terms& c, std::size_t terms) {
  double cost = 0;
  for (const Observation& each : all) {
    const double f = sum_of(c, each.x, terms);
    if (!(f > 0) || !std::isfinite(f)) return infinite;
    const double r = std::log(each.y / f);
    cost += r * r;
  }
  return cost;
}

// Descends from `c`; masked-out coefficients stay 0.
Terms descend(std::span<const Observation> all, Terms c, std::size_t terms, const Mask& in) {
  double cost = cost_of(all, c, terms), damping = 1e-3;
  for (int round = 0; round < 300 && damping < 1e12; ++round) {
    Matrix normal{};
    Terms gradient{};
    for (const Observation& each : all) {
      const double f = sum_of(c, each.x, terms);
      const double r = std::log(each.y / f);
      Terms j{};
      for (std::size_t k = 0; k < terms; ++k) j[k] = in[k] ? c[k] * each.x[k] / f : 0;
      for (std::size_t a = 0; a < terms; ++a) {
        gradient[a] += j[a] * r;
        for (std::size_t b = 0; b < terms; ++b) normal[a][b] += j[a] * j[b];
      }
    }
    for (std::size_t a = 0; a < terms; ++a) normal[a][a] += damping * normal[a][a] + (in[a] ? 1e-30 : 1);
    const auto step = solve(normal, gradient, terms);
    if (!step) {
      damping *= 10;
      continue;
    }
    Terms next = c;
    for (std::size_t a = 0; a < terms; ++a)
      if (in[a]) next[a] *= std::exp(std::clamp((*step)[a], -5.0, 5.0));
    const double reached = cost_of(all, next, terms);
    if (!(reached < cost)) {
      damping *= 10;
      continue;
    }
    const bool still = cost - reached <= 1e-15 * cost;
    c = next;
    cost = reached;
    damping = std::max(damping / 10, 1e-15);
    if (still) break;
  }
  return c;
}

// The coefficient with which this term alone would explain the figures: the scale to start from. Absent for a term that
// is always 0.
std::optional<double> scale_of(std::span<const Observation> all, std::size_t term) {
  double sum = 0;
  int count = 0;
  for (const Observation& each : all)
    if (each.x[term] > 0) sum += std::log(each.y / each.x[term]), ++count;
  if (count == 0) return std::nullopt;
  return std::exp(sum / count);
}

// The best coefficients with only these terms, starting from the middle and from points where each term dominates.
std::optional<Terms> best_of(std::span<const Observation> all, std::size_t terms, const Mask& in) {
  Terms scales{};
  for (std::size_t j = 0; j < terms; ++j) {
    if (!in[j]) continue;
    const auto scale = scale_of(all, j);
    if (!scale) return std::nullopt;
    scales[j] = *scale;
  }
  std::optional<Terms> best;
  for (std::size_t leading = 0; leading <= terms; ++leading) {
    if (leading < terms && !in[leading]) continue;
    Terms start = scales;
    for (std::size_t j = 0; j < terms; ++j)
      if (leading < terms && j != leading) start[j] *= 1e-3;
    if (!std::isfinite(cost_of(all, start, terms))) continue;
    const Terms reached = descend(all, start, terms, in);
    if (!best || cost_of(all, reached, terms) < cost_of(all, *best, terms)) best = reached;
  }
  return best;
}

}  // namespace

double TermFit::at(const Terms& x) const { return sum_of(coefficients, x, terms_); }

std::optional<double> TermFit::half_width(const Terms& g) const {
  const auto form = [&](const Matrix& m) {
    double sum = 0;
    for (std::size_t a = 0; a < terms_; ++a)
      for (std::size_t b = 0; b < terms_; ++b) sum += g[a] * m[a][b] * g[b];
    return std::sqrt(std::max(0.0, sum));
  };
  std::optional<double> half;
  if (freedom > 0) {
    const double squares = rms * rms * static_cast<double>(residuals.size());
    half = t95(freedom) * std::sqrt(squares / freedom) * form(inverse_);
  }
  if (carried_) half = std::max(half.value_or(0), t95(0) * form(*carried_));
  if (half && !std::isfinite(*half)) return std::nullopt;
  return half;
}

std::optional<double> TermFit::log_half_width(const Terms& x) const {
  const double f = at(x);
  if (!(f > 0)) return std::nullopt;
  Terms g{};
  for (std::size_t j = 0; j < terms_; ++j) g[j] = x[j] / f;
  return half_width(g);
}

std::optional<TermFit> fit_terms(std::span<const Observation> observations, std::size_t terms) {
  if (terms < 1 || terms > max_terms || observations.size() < terms) return std::nullopt;
  // Scale the terms, so that coefficients in seconds and in seconds per byte weigh the same.
  Terms unit{};
  std::vector<Observation> all(observations.begin(), observations.end());
  for (std::size_t j = 0; j < terms; ++j) {
    const auto scale = scale_of(observations, j);
    if (!scale) return std::nullopt;
    unit[j] = *scale;
    for (Observation& each : all) each.x[j] *= unit[j];
  }

  std::optional<Terms> best;
  double lowest = infinite;
  // Fewer terms first: another one must improve the fit.
  std::vector<Mask> masks;
  for (unsigned bits = 1; bits < (1u << terms); ++bits)
    masks.push_back({(bits & 1u) != 0, (bits & 2u) != 0, (bits & 4u) != 0});
  std::ranges::stable_sort(
      masks, [](const Mask& a, const Mask& b) { return std::ranges::count(a, true) < std::ranges::count(b, true); });
  for (const Mask& in : masks) {
    const auto reached = best_of(all, terms, in);
    if (!reached) continue;
    const double cost = cost_of(all, *reached, terms);
    if (best && !(cost < lowest * (1 - 1e-6) - 1e-20)) continue;
    best = reached;
    lowest = cost;
  }
  if (!best) return std::nullopt;

  TermFit fit;
  fit.terms_ = terms;
  fit.freedom = static_cast<int>(observations.size()) - static_cast<int>(terms);
  Matrix normal{}, middle{};
  bool known = true;
  for (const Observation& each : all) {
    const double f = sum_of(*best, each.x, terms);
    fit.residuals.push_back(std::log(each.y / f));
    known = known && each.relative_error.has_value();
    const double variance = std::pow(each.relative_error.value_or(0), 2);
    for (std::size_t a = 0; a < terms; ++a)
      for (std::size_t b = 0; b < terms; ++b) {
        const double product = each.x[a] / f * each.x[b] / f;
        normal[a][b] += product;
        middle[a][b] += variance * product;
      }
  }
  for (const double residual : fit.residuals) fit.rms += residual * residual;
  fit.rms = std::sqrt(fit.rms / static_cast<double>(fit.residuals.size()));

  Matrix inverse{}, carried{};
  for (std::size_t j = 0; j < terms; ++j) {
    Terms one{};
    one[j] = 1;
    const auto column = solve(normal, one, terms);
    if (!column) return std::nullopt;
    for (std::size_t i = 0; i < terms; ++i) inverse[i][j] = (*column)[i];
  }
  for (std::size_t a = 0; a < terms; ++a)
    for (std::size_t b = 0; b < terms; ++b)
      for (std::size_t i = 0; i < terms; ++i)
        for (std::size_t j = 0; j < terms; ++j) carried[a][b] += inverse[a][i] * middle[i][j] * inverse[j][b];
  for (std::size_t a = 0; a < terms; ++a) {
    fit.coefficients[a] = (*best)[a] * unit[a];
    for (std::size_t b = 0; b < terms; ++b) {
      inverse[a][b] *= unit[a] * unit[b];
      carried[a][b] *= unit[a] * unit[b];
    }
  }
  fit.inverse_ = inverse;
  if (known) fit.carried_ = carried;
  return fit;
}

}  // namespace assay::report::scaling
