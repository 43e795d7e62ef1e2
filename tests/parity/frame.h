// Framework of the parity tests: a body runs one op on one side, with the same inputs on the oracle and on the device,
// and the outputs must agree. If a device has no such op, the test is skipped with its backend's reason.
#pragma once

#include "workloads/ops/backend.h"
#include "workloads/ops/tolerance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::ops::parity {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr DType half = DType::bf16, e4m3 = DType::fp8_e4m3, e5m2 = DType::fp8_e5m2;

// A host array.
class Tensor {
 public:
  Tensor(DType dtype, std::int64_t count);  // zeros
  // Normally distributed numbers; `purpose` is the seed.
  static Tensor normal(DType dtype, std::int64_t count, std::string_view purpose, double deviation = 1,
                       double mean = 0);
  static Tensor integers(const std::vector<std::int32_t>& values);
  // Each in [0, bound).
  static Tensor integers(std::int64_t count, std::int64_t bound, std::string_view purpose);

  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const { return bytes_.size(); }
  const void* data() const { return bytes_.data(); }
  void* data() { return bytes_.data(); }

 private:
  DType dtype_;
  std::int64_t count_;
  std::vector<std::byte> bytes_;
};

struct Output {
  std::string name;
  Tensor value;
  Tolerance tolerance;
};
using Outputs = std::vector<Output>;

// A backend with its device: the oracle's or the one under test. Owns the arrays that it hands out.
class Side {
 public:
  Side(std::shared_ptr<Device> device, std::shared_ptr<Backend> backend);

  Backend& backend() const { return *backend_; }
  Stream& stream() const { return *stream_; }
  // Copies the tensor to the device.
  void* put(const Tensor& tensor);
  // An array of NaN (all bits set), which reveals elements that an op did not write.
  void* space(std::size_t bytes);
  void* space(DType dtype, std::int64_t count) { return space(static_cast<std::size_t>(count) * size_of(dtype)); }
  Tensor get(const void* data, DType dtype, std::int64_t count);

  // Fails if the op writes past its workspace.
  template <typename Op, typename Args>
  void run(Op& op, Args args) {
    const std::size_t bytes = op.workspace_bytes();
    args.workspace = space(bytes + guard_bytes);
    op.run(*stream_, args);
    stream_->synchronize();
    expect_untouched(static_cast<const std::byte*>(args.workspace) + bytes, op.implementation());
  }
  // Copies weights to the device, in the op's own layout if it packs.
  template <typename Op>
  const void* pack(Op& op, const Tensor& weights) {
    const void* plain = put(weights);
    if (op.packed_bytes() == 0) return plain;
    void* packed = space(op.packed_bytes());
    op.pack(*stream_, plain, packed);
    stream_->synchronize();
    return packed;
  }

 private:
  static constexpr std::size_t guard_bytes = 4096;
  void expect_untouched(const void* guard, const std::string& implementation);

  std::shared_ptr<Device> device_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<Stream> stream_;
  std::deque<Buffer> buffers_;
};

// The oracle in host memory; tests also use it to make inputs that another op writes.
Side oracle_side();
// The device's side, or the reason there is none.
Made<Side> device_side(DeviceKind kind);

// Fails if an output exceeds its tolerance.
void expect_close(const Output& got, const Output& want, const std::string& implementation);
// Fails if two runs are not bitwise equal.
void expect_same_bits(const Outputs& first, const Outputs& second, const std::string& implementation);

// Makes the op on both sides and runs `body(side, op)` on the oracle, and on the device: there twice if the op is
// deterministic.
template <typename Op, typename Desc, typename Body>
void expect_agreement(DeviceKind kind, Made<Op> (Backend::*make)(const Desc&), const Desc& desc, Body body) {
  Side oracle = oracle_side();
  auto expected = (oracle.backend().*make)(desc);
  ASSERT_TRUE(expected) << expected.reason();
  auto device = device_side(kind);
  if (!device) GTEST_SKIP() << device.reason();
  const std::unique_ptr<Side> side = device.take();
  auto made = (side->backend().*make)(desc);
  if (!made) GTEST_SKIP() << made.reason();
  const auto op = made.take();
  const std::string implementation = op->implementation();
  EXPECT_FALSE(implementation.empty());
  EXPECT_FALSE(op->isa().empty());
  const Outputs want = body(oracle, *expected.take());
  const Outputs got = body(*side, *op);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], implementation);
  if (op->repeats()) expect_same_bits(got, body(*side, *op), implementation);
}

// Every device, type and case of one op; a case's name consists of letters, digits and underscores.
template <typename Case>
using Parameters = std::tuple<DeviceKind, DType, Case>;

template <typename Case>
class Parity : public testing::TestWithParam<Parameters<Case>> {
 protected:
  DeviceKind kind() const { return std::get<0>(this->GetParam()); }
  DType dtype() const { return std::get<1>(this->GetParam()); }
  const Case& shape() const { return std::get<2>(this->GetParam()); }
};

// The CPU has no ops on fp16.
template <typename Case>
auto on_every_device(const std::vector<Case>& cases) {
  std::vector<Parameters<Case>> all;
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda})
    for (const DType dtype : {DType::f32, DType::bf16, DType::fp16})
      for (const Case& shape : cases)
        if (kind == DeviceKind::cuda || dtype != DType::fp16) all.emplace_back(kind, dtype, shape);
  return testing::ValuesIn(std::move(all));
}

template <typename Case>
std::string name_of_case(const testing::TestParamInfo<Parameters<Case>>& info) {
  const auto& [kind, dtype, shape] = info.param;
  return fmt::format("{}_{}_{}", name_of(kind), name_of(dtype), shape.name);
}

// The type of statistics and norm parameters of an op on `dtype`.
inline DType statistic(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace assay::ops::parity
