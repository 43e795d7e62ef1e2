// Matrix products of every device against the oracle: one body for every dtype, form, transpose and shape.
#include "tests/parity/frame.h"
#include "workloads/ops/random.h"

namespace assay::ops::parity {
namespace {

struct Types {
  DType a, b, out;
};

struct Shape {
  std::int64_t m, n, k;
};

using Product = std::tuple<DeviceKind, Types, WeightForm, int, Shape>;

class MatmulParity : public testing::TestWithParam<Product> {};

TEST_P(MatmulParity, AgreesWithOracle) {
  const auto [kind, types, form, transpose, shape] = GetParam();
  MatmulDesc desc{.m = shape.m, .n = shape.n, .k = shape.k, .a = types.a, .b = types.b, .out = types.out};
  desc.transpose_a = transpose & 1;
  desc.transpose_b = transpose & 2;
  Side oracle = oracle_side();
  auto expected = oracle.backend().make<Matmul>(desc);
  ASSERT_TRUE(expected) << expected.reason();
  desc.form = form;
  desc.pack_from = types.b;
  auto device = device_side(kind);
  if (!device) GTEST_SKIP() << device.reason();
  const auto side = device.take();
  auto made = side->backend().make<Matmul>(desc);
  if (!made) GTEST_SKIP() << made.reason();
  const auto op = made.take();
  EXPECT_FALSE(op->implementation().empty());
  EXPECT_FALSE(op->isa().empty());

  Tensor a(types.a, shape.m * shape.k), b(types.b, shape.k * shape.n);
  fill_random(a.data(), types.a, 0, a.count(), Rng(3, "a"), op->saturates_pairs());
  fill_random(b.data(), types.b, 0, b.count(), Rng(3, "b"));
  const std::int64_t count = shape.m * shape.n;
  const Tolerance tolerance = matmul_tolerance(types.a, types.out, shape.k);
  const auto output = [&, &types = types](Side& on, Matmul& matmul) -> Output {
    MatmulArgs args;
    args.a = on.put(a);
    args.b = on.pack(matmul, b);
    args.out = on.space(types.out, count);
    for (int run = 0; run < 2; ++run) on.run(matmul, args);  // the second overwrites, not adds
    return {"out", on.get(args.out, types.out, count), tolerance};
  };
  expect_close(output(*side, *op), output(oracle, *expected.take()), op->implementation());
}

std::string name_of_product(const testing::TestParamInfo<Product>& info) {
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
        testing::Values(WeightForm::plain, WeightForm::packed, WeightForm::inner_product, WeightForm::tiles),
        testing::Range(0, 4),
        testing::Values(Shape{1, 1, 1}, Shape{1, 37, 19}, Shape{53, 1, 7}, Shape{5, 7, 1}, Shape{64, 64, 64},
                        Shape{65, 129, 257}, Shape{3, 1000, 511})),
    name_of_product);

// Types that only GPUs support. k and n of 8-bit operands are multiples of what tensor cores read at a time.
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
    name_of_product);

}  // namespace
}  // namespace assay::ops::parity
