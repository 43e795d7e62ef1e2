// Axes of figures: range, ticks and labels in readable units; and which points of a long curve are drawn.
#pragma once

#include "reports/model/document.h"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::report {

struct Tick {
  double at = 0;
  std::string label;
};

struct Scale {
  std::string title;  // with the unit, unless the labels carry it
  bool logarithmic = false;
  double low = 0;  // lower end of the drawn range, in the axis' base unit
  double high = 1;
  std::vector<Tick> ticks;  // two to twelve, within [low, high]
};

// Whether a value can be drawn: a number, and positive on a logarithmic axis.
bool drawable(const Axis& axis, double value);

// A scale that contains every drawable value. Linear: steps of 1, 2 or 5 x 10^k in one unit, named in the title; starts
// at zero with `from_zero` (bars) or if zero is near. Logarithmic: powers of ten (of two for bytes), each label with
// its unit; ranges below a factor of five have too few round numbers and are drawn linearly. Dates: whole days.
// Categories: one tick each, with half a place of room at both ends.
Scale make_scale(const Axis& axis, const std::vector<double>& values, bool from_zero);

// At most `max` (at least 4) of the points, in order: the first, the last, and the lowest and highest of each stretch
// in between, so that no extreme is lost. Points without a finite y count as neither.
std::vector<Point> thin(const std::vector<Point>& points, std::size_t max);
// The largest limit per curve with which curves of these lengths draw at most `total` points together; at least 16.
std::size_t points_per_curve(const std::vector<std::size_t>& lengths, std::size_t total);

}  // namespace assay::report
