// float64 answers on sampled rows.
#include "suites/gemm/sampled_rows.h"

#include "harness/core/error.h"
#include "workloads/ops/tolerance.h"

#include <algorithm>
#include <cmath>

namespace assay::gemm {

namespace {

constexpr std::size_t max_culprits = 20;

template <typename T>
double widened(T value) {
  if constexpr (requires { value.bits; })
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

// out (n) = row i of op(a) x b, b stored (K, N).
template <typename A, typename B>
void row_of(const Shape& s, const A* a, const B* b, std::int64_t i, double* out) {
  std::fill(out, out + s.n, 0.0);
  for (std::int64_t k = 0; k < s.k; ++k) {
    const double x = widened(a[s.transpose_a ? k * s.m + i : i * s.k + k]);
    const B* row = b + k * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) out[j] += x * widened(row[j]);
  }
}

// Like row_of for b stored as (N, K): goes along k, which is contiguous.
template <typename A, typename B>
void row_of_transposed(const Shape& s, const A* a, const B* b, std::int64_t i, double* out) {
  std::vector<double> x(static_cast<std::size_t>(s.k));
  for (std::int64_t k = 0; k < s.k; ++k)
    x[static_cast<std::size_t>(k)] = widened(a[s.transpose_a ? k * s.m + i : i * s.k + k]);
  for (std::int64_t j = 0; j < s.n; ++j) {
    const B* column = b + j * s.k;
    double sums[4] = {};  // independent, so that the adds overlap
    std::int64_t k = 0;
    for (; k + 4 <= s.k; k += 4)
      for (int lane = 0; lane < 4; ++lane)
        sums[lane] += x[static_cast<std::size_t>(k + lane)] * widened(column[k + lane]);
    for (; k < s.k; ++k) sums[0] += x[static_cast<std::size_t>(k)] * widened(column[k]);
    out[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

template <typename A, typename B>
void answer(const Shape& s, const void* a, const void* b, std::int64_t i, double* out) {
  if (s.transpose_b)
    row_of_transposed(s, static_cast<const A*>(a), static_cast<const B*>(b), i, out);
  else
    row_of(s, static_cast<const A*>(a), static_cast<const B*>(b), i, out);
}

void answer_row(const Shape& s, const void* a, const void* b, std::int64_t i, double* out) {
  switch (s.types.a) {
    case DType::f64: return answer<double, double>(s, a, b, i, out);
    case DType::f32:
    case DType::tf32: return answer<float, float>(s, a, b, i, out);
    case DType::fp16: return answer<fp16, fp16>(s, a, b, i, out);
    case DType::fp8_e4m3: return answer<fp8_e4m3, fp8_e4m3>(s, a, b, i, out);
    case DType::fp8_e5m2: return answer<fp8_e5m2, fp8_e4m3>(s, a, b, i, out);
    case DType::s8: return answer<std::int8_t, std::int8_t>(s, a, b, i, out);
    case DType::bf16: return answer<bf16, bf16>(s, a, b, i, out);
    case DType::u8: return answer<std::uint8_t, std::int8_t>(s, a, b, i, out);
    default: throw Error(fmt::format("no float64 answer for {}", name_of(s.types.a)));
  }
}

}  // namespace

double element(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::f64: return static_cast<const double*>(data)[i];
    case DType::f32: return widened(static_cast<const float*>(data)[i]);
    case DType::bf16: return widened(static_cast<const bf16*>(data)[i]);
    case DType::fp16: return widened(static_cast<const fp16*>(data)[i]);
    case DType::i32: return widened(static_cast<const std::int32_t*>(data)[i]);
    default: throw Error(fmt::format("products are not written as {}", name_of(dtype)));
  }
}

std::vector<std::int64_t> sample_rows(std::int64_t m, std::int64_t count) {
  const std::int64_t n = std::min(m, count);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < n; ++i) rows.push_back(n == 1 ? 0 : i * (m - 1) / (n - 1));
  return rows;
}

double Mismatch::relative_l2() const {
  // The absolute error if the expected result is all zero.
  return norm_squared > 0 ? std::sqrt(error_squared / norm_squared) : std::sqrt(error_squared);
}

SampledRows::SampledRows(const Shape& shape, const void* a, const void* b, const cpu::Team& team)
    : shape_(shape), rows_(sample_rows(shape.m)), want_(rows_.size() * static_cast<std::size_t>(shape.n)) {
  team.run([&](int thread) {
    for (std::size_t i = static_cast<std::size_t>(thread); i < rows_.size(); i += static_cast<std::size_t>(team.size()))
      answer_row(shape_, a, b, rows_[i], want_.data() + i * static_cast<std::size_t>(shape_.n));
  });
  double sum = 0;
  for (const double x : want_) sum += x * x;
  scale_ = std::sqrt(sum / static_cast<double>(want_.size()));
}

std::int64_t SampledRows::largest_column(std::size_t index) const {
  const auto begin = want_.begin() + static_cast<std::ptrdiff_t>(index) * shape_.n;
  return std::max_element(begin, begin + shape_.n, [](double x, double y) { return std::abs(x) < std::abs(y); }) -
         begin;
}

void SampledRows::compare(std::size_t index, const void* got, const std::string& where, Mismatch& into) const {
  const ops::Tolerance limits =
      ops::matmul_tolerance(shape_.types.a, shape_.types.out, shape_.k, shape_.fast_accumulate);
  const double* want = want_.data() + index * static_cast<std::size_t>(shape_.n);
  for (std::int64_t j = 0; j < shape_.n; ++j) {
    const double x = element(got, shape_.types.out, j);
    const double miss = x - want[j];
    into.error_squared += miss * miss;
    into.norm_squared += want[j] * want[j];
    // Written so that a NaN is wrong.
    if (std::abs(miss) <= limits.element_relative * std::abs(want[j]) + limits.element_scale * scale_) continue;
    ++into.wrong;
    if (into.culprits.size() < max_culprits)
      into.culprits.push_back(
          fmt::format("row {}, column {}{}: {:.9g}, not {:.9g}", rows_[index], j, where, x, want[j]));
  }
  into.elements += shape_.n;
}

}  // namespace assay::gemm
