// Random numbers and finite differences of the gradient tests.
#include "tests/gradient/frame.h"

#include "harness/device/cpu/cpu_device.h"
#include "tests/oracle/oracle.h"
#include "workloads/ops/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace assay::ops::gradient {

Values normal(std::int64_t count, std::string_view purpose) {
  Values values(static_cast<std::size_t>(count));
  fill_random(values.data(), DType::f64, 0, count, Rng(11, purpose));
  return values;
}

std::vector<std::int32_t> integers(std::int64_t count, std::int64_t bound, std::string_view purpose) {
  const Rng rng(11, purpose);
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(bound))));
  return values;
}

Values space(std::int64_t count) {
  return Values(static_cast<std::size_t>(count), std::numeric_limits<double>::quiet_NaN());
}

double dot(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Backend& reference() {
  static const std::shared_ptr<Backend> backend = make_reference_backend();
  return *backend;
}

Stream& stream() {
  static const std::unique_ptr<Stream> stream = cpu::make_cpu_device()->make_stream();
  return *stream;
}

void expect_gradients(const std::function<double()>& loss, const std::vector<Variable>& variables) {
  constexpr double h = 1e-3;
  const double size = std::abs(loss());
  for (const Variable& variable : variables) {
    SCOPED_TRACE(variable.name);
    Values& value = *variable.value;
    const Values& gradient = *variable.gradient;
    ASSERT_EQ(gradient.size(), value.size());
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    // Truncation error is of order h^4, rounding error an ulp of the loss divided by h.
    const double limit = 1e-8 * largest + 1e-12 * (1 + size);
    const std::size_t step = (value.size() + 119) / 120;
    int wrong = 0;
    for (std::size_t i = 0; i < value.size(); i += step) {
      const double middle = value[i];
      const auto at = [&](double offset) {
        value[i] = middle + offset;
        return loss();
      };
      const double near = (at(h) - at(-h)) / (2 * h), far = (at(2 * h) - at(-2 * h)) / (4 * h);
      value[i] = middle;
      const double difference = (4 * near - far) / 3;
      if (!(std::abs(difference - gradient[i]) <= limit) && ++wrong < 4)
        ADD_FAILURE() << "element " << i << " of " << value.size() << ": " << gradient[i] << ", by differences "
                      << difference;
    }
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace assay::ops::gradient
