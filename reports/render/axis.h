// Axes of figures: range, ticks and their labels in people-sized units; and which points of a long curve are drawn.
#pragma once

#include "reports/model/document.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

struct Tick {
  double at = 0;
  std::string label;
};

struct Scale {
  std::string title;  // with the unit, unless the labels carry it
  bool logarithmic = false;
  double low = 0;  // of what is drawn, in the axis' base unit
  double high = 1;
  std::vector<Tick> ticks;  // within [low, high], two to twelve of them
};

// Whether a value has a place on the axis: a number, and positive where the axis is logarithmic.
bool drawable(const Axis& axis, double value);

// A scale that holds every drawable value. Linear: steps of 1, 2 or 5 x 10^k in one
// unit, named in the title; from zero with `from_zero` (bars), or when zero is near. Logarithmic: powers of ten (of two
// for bytes), each label with its unit; a range of less than a factor of five is drawn linearly, for want of round
// numbers. An axis with categories: one tick each, half a place of room at both ends.
Scale make_scale(const Axis& axis, const std::vector<double>& values, bool from_zero);

// At most `most` (at least 4) of the points, in order: the first and the last, and of each stretch between them the
// lowest and the highest, so that no extreme is lost. Points without a finite y count as neither.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t most);
// The largest cap under which curves of these lengths draw at most `total` points together; at least 16.
std::size_t points_per_curve(const std::vector<std::size_t>& lengths, std::size_t total);

}  // namespace assay::report
