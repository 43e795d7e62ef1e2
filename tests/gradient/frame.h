// Tests the backward ops of the reference backend against finite differences, in f64.
#pragma once

#include "workloads/ops/backend.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace assay::ops::gradient {

using Values = std::vector<double>;

// Normally distributed numbers; `purpose` is the seed.
Values normal(std::int64_t count, std::string_view purpose);
std::vector<std::int32_t> integers(std::int64_t count, std::int64_t bound, std::string_view purpose);
// NaN, which reveals elements that an op did not write.
Values space(std::int64_t count);
double dot(const Values& a, const Values& b);

Backend& reference();
Stream& stream();

// Runs an op on the host, with a workspace.
template <typename Op, typename Args>
void run(Op& op, Args args) {
  std::vector<double> workspace(op.workspace_bytes() / sizeof(double) + 1);
  args.workspace = workspace.data();
  op.run(stream(), args);
}

// The reference's op; throws if it has none.
template <typename Op, typename Desc>
std::unique_ptr<Op> make(Made<Op> (Backend::*maker)(const Desc&), const Desc& desc) {
  auto made = (reference().*maker)(desc);
  if (!made) throw std::runtime_error(made.reason());
  return made.take();
}

struct Variable {
  std::string name;
  Values* value;           // an input of `loss`
  const Values* gradient;  // d loss / d value, from the backward op
};

// Compares gradients with fourth-order differences at every element (at most 120 per variable, evenly spaced).
void expect_gradients(const std::function<double()>& loss, const std::vector<Variable>& variables);

}  // namespace assay::ops::gradient
