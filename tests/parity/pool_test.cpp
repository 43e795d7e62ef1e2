// Pooling against the oracle.
#include "tests/parity/frame.h"

#include <limits>

namespace assay::ops::parity {
namespace {

struct Pool {
  std::string name;
  PoolDesc desc;
};

class PoolParity : public Parity<Pool> {
 protected:
  PoolDesc desc() const {
    PoolDesc d = shape().desc;
    d.dtype = dtype();
    return d;
  }
  static std::int64_t x_count(const PoolDesc& d) { return d.n * d.h * d.w * d.c; }
  static std::int64_t y_count(const PoolDesc& d) { return d.n * d.p() * d.q() * d.c; }
  // Each backend saves in its own format, so only y is compared.
  static Outputs forward(Side& side, PoolForward& op, const PoolDesc& d, void** saved) {
    PoolForward::Args args;
    args.x = side.put(Tensor::normal(d.dtype, x_count(d), "x"));
    args.y = side.space(d.dtype, y_count(d));
    args.saved = *saved = side.space(op.saved_bytes());
    side.run(op, args);
    const auto window = d.kind == PoolKind::average ? d.window_h * d.window_w : 1;
    return {{"y", side.get(args.y, d.dtype, y_count(d)), tolerance_of(OpGroup::pool, d.dtype, d.dtype, window)}};
  }
};

TEST_P(PoolParity, Forward) {
  const PoolDesc d = desc();
  void* saved = nullptr;
  expect_agreement(kind(), &Backend::make<PoolForward>, d,
                   [&](Side& side, PoolForward& op) { return forward(side, op, d, &saved); });
}

TEST_P(PoolParity, Backward) {
  const PoolDesc d = desc();
  expect_agreement(kind(), &Backend::make<PoolBackward>, d, [&](Side& side, PoolBackward& op) -> Outputs {
    PoolBackward::Args args;
    void* saved = nullptr;
    forward(side, *side.backend().make<PoolForward>(d).take(), d, &saved);
    args.saved = saved;
    args.dy = side.put(Tensor::normal(d.dtype, y_count(d), "dy"));
    args.dx = side.space(d.dtype, x_count(d));
    side.run(op, args);
    return {{"dx", side.get(args.dx, d.dtype, x_count(d)),
             tolerance_of(OpGroup::pool, d.dtype, d.dtype, d.window_h * d.window_w)}};
  });
}

constexpr auto maximum = PoolKind::maximum;
constexpr auto average = PoolKind::average;

INSTANTIATE_TEST_SUITE_P(
    All, PoolParity,
    on_every_device<Pool>(
        {{"maximum_1", {.kind = maximum, .n = 1, .h = 1, .w = 1, .c = 1}},
         {"maximum_stem",
          {.kind = maximum,
           .n = 2,
           .h = 16,
           .w = 16,
           .c = 64,
           .window_h = 3,
           .window_w = 3,
           .stride = 2,
           .padding = 1}},
         {"maximum_odd", {.kind = maximum, .n = 1, .h = 9, .w = 7, .c = 5, .window_h = 2, .window_w = 3, .stride = 2}},
         {"maximum_overlapping",
          {.kind = maximum, .n = 1, .h = 8, .w = 8, .c = 33, .window_h = 5, .window_w = 5, .padding = 2}},
         {"maximum_odd_wide",
          {.kind = maximum, .n = 2, .h = 9, .w = 7, .c = 24, .window_h = 3, .window_w = 3, .stride = 2, .padding = 1}},
         {"maximum_overlapping_wide",
          {.kind = maximum, .n = 1, .h = 7, .w = 9, .c = 16, .window_h = 4, .window_w = 5, .padding = 3}},
         {"maximum_apart_wide",
          {.kind = maximum, .n = 1, .h = 11, .w = 10, .c = 8, .window_h = 2, .window_w = 1, .stride = 4}},
         {"average_global", {.kind = average, .n = 3, .h = 7, .w = 7, .c = 130, .window_h = 7, .window_w = 7}},
         {"average_over_the_edge",
          {.kind = average,
           .n = 2,
           .h = 9,
           .w = 9,
           .c = 17,
           .window_h = 3,
           .window_w = 3,
           .stride = 2,
           .padding = 1}}}),
    name_of_case<Pool>);

// The maximum or average of a window with a NaN is NaN.
TEST_P(PoolParity, NanStays) {
  const PoolDesc d = desc();
  expect_agreement(kind(), &Backend::make<PoolForward>, d, [&](Side& side, PoolForward& op) -> Outputs {
    Tensor x = Tensor::normal(d.dtype, x_count(d), "x");
    for (std::int64_t i = 0; i < x.count(); i += 41) x.set(i, std::numeric_limits<double>::quiet_NaN());
    PoolForward::Args args;
    args.x = side.put(x);
    args.y = side.space(d.dtype, y_count(d));
    args.saved = side.space(op.saved_bytes());
    side.run(op, args);
    return {{"y", side.get(args.y, d.dtype, y_count(d)),
             tolerance_of(OpGroup::pool, d.dtype, d.dtype, d.window_h * d.window_w)}};
  });
}

// Rectified images are full of equal zeros: the first of equal maxima gets the gradient.
TEST_P(PoolParity, EqualMaximaGiveTheGradientToTheFirst) {
  const PoolDesc d = desc();
  if (d.kind != PoolKind::maximum) GTEST_SKIP() << "an average has no largest element";
  expect_agreement(kind(), &Backend::make<PoolBackward>, d, [&](Side& side, PoolBackward& op) -> Outputs {
    const auto made = side.backend().make<PoolForward>(d).take();
    PoolForward::Args first;
    first.x = side.put(Tensor(d.dtype, x_count(d)));
    first.y = side.space(d.dtype, y_count(d));
    first.saved = side.space(made->saved_bytes());
    side.run(*made, first);
    PoolBackward::Args args;
    args.saved = first.saved;
    args.dy = side.put(Tensor::normal(d.dtype, y_count(d), "dy"));
    args.dx = side.space(d.dtype, x_count(d));
    side.run(op, args);
    return {{"dx", side.get(args.dx, d.dtype, x_count(d)),
             tolerance_of(OpGroup::pool, d.dtype, d.dtype, d.window_h * d.window_w)}};
  });
}

}  // namespace
}  // namespace assay::ops::parity
