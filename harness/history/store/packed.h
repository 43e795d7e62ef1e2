// The points and cases of one run as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::store {

// Numbers are ids of the store's tables.
struct PackedPoint {
  std::int64_t series = 0;
  double log = 0;
  float within = 0;
  std::int64_t choices = 0;
  bool disturbed = false;
  bool weekly = false;  // the median of a week
};

struct BrokenCase {
  std::int64_t benchmark = 0;
  std::string text;
};

// Sorts points by series, ascending.
std::string pack_points(std::vector<PackedPoint> points);
std::string pack_cases(std::vector<std::int64_t> cases);
std::string pack_broken(const std::vector<BrokenCase>& cases);

// Throw Error for bytes that these functions did not make.
void unpack_points(std::string_view bytes, std::vector<PackedPoint>& points);  // replaces them
std::vector<std::int64_t> unpack_cases(std::string_view bytes);
std::vector<BrokenCase> unpack_broken(std::string_view bytes);

}  // namespace assay::store
