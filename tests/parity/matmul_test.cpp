// Matrix products of every device against the oracle: one body for every dtype, form, transpose and shape.
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "tests/support/devices.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/random.h"
#include "workloads/ops/tolerance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::ops {
namespace {

struct Types {
  DType a, b, out;
};

struct Shape {
  std::int64_t m, n, k;
};

using Parameters = std::tuple<DeviceKind, Types, WeightForm, int, Shape>;

class MatmulParity : public testing::TestWithParam<Parameters> {};

double element(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::f64: return static_cast<const double*>(data)[i];
    case DType::f32: return static_cast<double>(static_cast<const float*>(data)[i]);
    case DType::bf16: return static_cast<double>(static_cast<float>(static_cast<const bf16*>(data)[i]));
    case DType::fp16: return static_cast<double>(static_cast<float>(static_cast<const fp16*>(data)[i]));
    case DType::i32: return static_cast<const std::int32_t*>(data)[i];
    default: throw Error("no such output");
  }
}

TEST_P(MatmulParity, AgreesWithOracle) {
  const auto [kind, types, form, transpose, shape] = GetParam();
  std::string why_not;
  const std::shared_ptr<Device> device = test::device_of(kind, why_not);
  if (!device) GTEST_SKIP() << why_not;
  std::optional<cpu::Team> team;
  if (kind == DeviceKind::cpu) team.emplace(cpu::rank_cores());
  MatmulDesc desc{.m = shape.m, .n = shape.n, .k = shape.k, .a = types.a, .b = types.b, .out = types.out};
  desc.transpose_a = transpose & 1;
  desc.transpose_b = transpose & 2;
  auto oracle = make_reference_backend()->make(desc);
  ASSERT_TRUE(oracle) << oracle.reason();
  desc.form = form;
  desc.pack_from = types.b;
  auto made = backend_for(*device)->make(desc);
  if (!made) GTEST_SKIP() << made.reason();
  const auto op = made.take();
  EXPECT_FALSE(op->implementation().empty());
  EXPECT_FALSE(op->isa().empty());

  const auto bytes = [](std::int64_t elements, DType dtype) {
    return static_cast<std::size_t>(elements) * size_of(dtype);
  };
  const std::int64_t elements = shape.m * shape.n;
  const Buffer a = device->allocate(bytes(shape.m * shape.k, types.a));
  const Buffer b = device->allocate(bytes(shape.k * shape.n, types.b));
  const Buffer out = device->allocate(bytes(elements, types.out));
  std::vector<std::byte> host_a(a.bytes()), host_b(b.bytes()), want(out.bytes());
  std::vector<std::byte> got(out.bytes(), std::byte{0xff});  // NaN, so that an element left alone is seen
  Buffer packed = device->allocate(std::max<std::size_t>(op->packed_bytes(), 1));
  Buffer workspace = device->allocate(std::max<std::size_t>(op->workspace_bytes(), 1));
  fill_random(host_a.data(), types.a, 0, shape.m * shape.k, Rng(3, "a"), op->saturates_pairs());
  fill_random(host_b.data(), types.b, 0, shape.k * shape.n, Rng(3, "b"));

  const auto stream = device->make_stream();
  oracle.take()->run(*stream, {.a = host_a.data(), .b = host_b.data(), .out = want.data()});
  device->copy(a.data(), host_a.data(), a.bytes(), *stream);
  device->copy(b.data(), host_b.data(), b.bytes(), *stream);
  device->copy(out.data(), got.data(), out.bytes(), *stream);
  const void* weights = b.data();
  if (op->packed_bytes() > 0) {
    op->pack(*stream, b.data(), packed.data());
    weights = packed.data();
  }
  const MatmulArgs args{.a = a.data(), .b = weights, .out = out.data(), .workspace = workspace.data()};
  for (int run = 0; run < 2; ++run) op->run(*stream, args);  // the second overwrites, not adds
  device->copy(got.data(), out.data(), out.bytes(), *stream);
  stream->synchronize();

  const Tolerance tolerance = matmul_tolerance(types.a, types.out, shape.k);
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < elements; ++i) norm += std::pow(element(want.data(), types.out, i), 2);
  const double rms = std::sqrt(norm / static_cast<double>(elements));
  int wrong = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const double x = element(got.data(), types.out, i), y = element(want.data(), types.out, i);
    error += (x - y) * (x - y);
    // The oracle rounds to the output type too, so two neighbours of a rounding boundary may differ by a whole ulp.
    if (!(std::abs(x - y) <= 2 * tolerance.element_relative * std::abs(y) + tolerance.element_scale * rms) &&
        ++wrong < 5)
      ADD_FAILURE() << op->implementation() << ": (" << i / shape.n << ", " << i % shape.n << ") is " << x << ", not "
                    << y;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(std::sqrt(error), tolerance.relative_l2 * std::sqrt(norm)) << op->implementation();
}

std::string name_of_case(const testing::TestParamInfo<Parameters>& info) {
  const auto& [kind, types, form, transpose, shape] = info.param;
  const char* transposes[] = {"nn", "tn", "nt", "tt"};
  return fmt::format("{}_{}_{}_{}_{}_{}_{}x{}x{}", name_of(kind), name_of(types.a), name_of(types.b),
                     name_of(types.out), name_of(form), transposes[transpose], shape.m, shape.n, shape.k);
}

INSTANTIATE_TEST_SUITE_P(
    All, MatmulParity,
    testing::Combine(
        testing::Values(DeviceKind::cpu, DeviceKind::cuda),
        testing::Values(Types{DType::f64, DType::f64, DType::f64}, Types{DType::f32, DType::f32, DType::f32},
                        Types{DType::bf16, DType::bf16, DType::bf16}, Types{DType::bf16, DType::bf16, DType::f32},
                        Types{DType::u8, DType::s8, DType::i32}),
        testing::Values(WeightForm::plain, WeightForm::packed, WeightForm::inner_product), testing::Range(0, 4),
        testing::Values(Shape{1, 1, 1}, Shape{1, 37, 19}, Shape{53, 1, 7}, Shape{5, 7, 1}, Shape{64, 64, 64},
                        Shape{65, 129, 257}, Shape{3, 1000, 511})),
    name_of_case);

constexpr auto e4m3 = DType::fp8_e4m3, e5m2 = DType::fp8_e5m2;

// Types that GPUs alone have. k and n of 8-bit operands are multiples of what tensor cores read at a time.
INSTANTIATE_TEST_SUITE_P(
    OnGpus, MatmulParity,
    testing::Combine(testing::Values(DeviceKind::cuda),
                     testing::Values(Types{DType::tf32, DType::tf32, DType::f32},
                                     Types{DType::fp16, DType::fp16, DType::fp16},
                                     Types{DType::fp16, DType::fp16, DType::f32}, Types{e4m3, e4m3, DType::bf16},
                                     Types{e5m2, e4m3, DType::bf16}, Types{e4m3, e5m2, DType::f32},
                                     Types{e4m3, e4m3, DType::fp16}, Types{DType::s8, DType::s8, DType::i32}),
                     testing::Values(WeightForm::plain, WeightForm::packed), testing::Range(0, 4),
                     testing::Values(Shape{1, 37, 19}, Shape{65, 129, 257}, Shape{1, 16, 32}, Shape{7, 48, 16},
                                     Shape{130, 80, 112})),
    name_of_case);

}  // namespace
}  // namespace assay::ops
