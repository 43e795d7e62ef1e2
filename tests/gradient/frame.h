// Finite differences against the backward ops of the reference backend, in f64.
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

// Normal numbers, the same for the same purpose.
Values normal(std::int64_t count, std::string_view purpose);
std::vector<std::int32_t> integers(std::int64_t count, std::int64_t bound, std::string_view purpose);
// NaN, so that an element left alone is seen.
Values space(std::int64_t count);
double dot(const Values& a, const Values& b);

Backend& reference();
Stream& stream();

// Runs an op on the host with the workspace that it asks for.
template <typename Op, typename Args>
void run(Op& op, Args args) {
  std::vector<double> workspace(op.workspace_bytes() / sizeof(double) + 1);
  args.workspace = workspace.data();
  op.run(stream(), args);
}

// The op that the reference makes; throws where it makes none.
template <typename Op, typename Desc>
std::unique_ptr<Op> make(Made<Op> (Backend::*maker)(const Desc&), const Desc& desc) {
  auto made = (reference().*maker)(desc);
  if (!made) throw std::runtime_error(made.reason());
  return made.take();
}

struct Variable {
  std::string name;
  Values* value;           // what `loss` depends on
  const Values* gradient;  // d loss / d value, by the backward op
};

// Differences of fourth order at every element (at most 120 of each variable, spread evenly).
void expect_gradients(const std::function<double()>& loss, const std::vector<Variable>& variables);

}  // namespace assay::ops::gradient
