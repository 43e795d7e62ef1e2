// The result of a product on a sample of its rows, in float64, and its comparison with a device's.
#pragma once

#include "harness/device/cpu/team.h"
#include "suites/gemm/shape.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::gemm {

// At least `count` rows of m (all if there are fewer): the first, the last, and evenly spaced ones between.
std::vector<std::int64_t> sample_rows(std::int64_t m, std::int64_t count = 18);

// Errors, summed over any number of comparisons.
struct Mismatch {
  double error_squared = 0;  // |got - want|^2
  double norm_squared = 0;   // |want|^2
  std::int64_t elements = 0;
  std::int64_t wrong = 0;             // beyond the element limits of the tolerance
  std::vector<std::string> culprits;  // up to 20: "row 3, column 5: 1.5, not 1.25"

  double relative_l2() const;
};

class SampledRows {
 public:
  // a and b are in host memory, stored as in the shape. Integer products are exact below 2^53.
  SampledRows(const Shape& shape, const void* a, const void* b, const cpu::Team& team);

  const std::vector<std::int64_t>& rows() const { return rows_; }
  // The column of the largest element of rows()[index].
  std::int64_t largest_column(std::size_t index) const;
  // Compares one row written by the device; `where` follows row and column in messages.
  void compare(std::size_t index, const void* got, const std::string& where, Mismatch& into) const;

 private:
  Shape shape_;
  std::vector<std::int64_t> rows_;
  std::vector<double> want_;  // (rows, n)
  double scale_ = 0;          // root mean square of want_
};

// Element i of an array as a double.
double element(const void* data, DType dtype, std::int64_t i);

}  // namespace assay::gemm
