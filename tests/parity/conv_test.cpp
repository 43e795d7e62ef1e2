// Convolutions against the oracle.
#include "tests/parity/frame.h"

namespace assay::ops::parity {
namespace {

struct Conv {
  std::string name;
  ConvDesc desc;
};

class ConvParity : public Parity<Conv> {
 protected:
  ConvDesc desc() const {
    ConvDesc d = shape().desc;
    d.dtype = dtype();
    return d;
  }
  static std::int64_t x_count(const ConvDesc& d) { return d.n * d.h * d.w * d.c; }
  static std::int64_t y_count(const ConvDesc& d) { return d.n * d.p() * d.q() * d.k; }
  static std::int64_t w_count(const ConvDesc& d) { return d.k * d.r * d.s * d.c / d.groups; }
};

TEST_P(ConvParity, Forward) {
  const ConvDesc d = desc();
  expect_agreement(kind(), &Backend::make<ConvForward>, d, [&](Side& side, ConvForward& op) -> Outputs {
    ConvForward::Args args;
    args.x = side.put(Tensor::normal(d.dtype, x_count(d), "x"));
    args.packed = side.pack(op, Tensor::normal(d.pack_from, w_count(d), "w"));
    args.y = side.space(d.dtype, y_count(d));
    side.run(op, args);
    return {{"y", side.get(args.y, d.dtype, y_count(d)),
             tolerance_of(OpGroup::conv, d.dtype, d.dtype, d.r * d.s * d.c / d.groups)}};
  });
}

TEST_P(ConvParity, BackwardData) {
  const ConvDesc d = desc();
  expect_agreement(kind(), &Backend::make<ConvBackwardData>, d, [&](Side& side, ConvBackwardData& op) -> Outputs {
    ConvBackwardData::Args args;
    args.dy = side.put(Tensor::normal(d.dtype, y_count(d), "dy"));
    args.packed = side.pack(op, Tensor::normal(d.pack_from, w_count(d), "w"));
    args.dx = side.space(d.dtype, x_count(d));
    side.run(op, args);
    return {{"dx", side.get(args.dx, d.dtype, x_count(d)),
             tolerance_of(OpGroup::conv, d.dtype, d.dtype, d.r * d.s * d.k / d.groups)}};
  });
}

TEST_P(ConvParity, BackwardWeights) {
  const ConvDesc d = desc();
  expect_agreement(kind(), &Backend::make<ConvBackwardWeights>, d, [&](Side& side, ConvBackwardWeights& op) -> Outputs {
    ConvBackwardWeights::Args args;
    args.x = side.put(Tensor::normal(d.dtype, x_count(d), "x"));
    args.dy = side.put(Tensor::normal(d.dtype, y_count(d), "dy"));
    args.dw =
        d.accumulate ? side.put(Tensor::normal(d.gradient, w_count(d), "dw", 10)) : side.space(d.gradient, w_count(d));
    side.run(op, args);
    // cuDNN 9 writes this gradient in the type of the images; it is widened, then added if the op accumulates.
    const DType rounded = kind() == DeviceKind::cuda ? d.dtype : d.gradient;
    Tolerance tolerance = tolerance_of(OpGroup::conv, d.dtype, rounded, d.n * d.p() * d.q());
    if (d.accumulate && rounded != d.gradient) tolerance.element_scale += 0x1p-6;
    return {{"dw", side.get(args.dw, d.gradient, w_count(d)), tolerance}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvParity,
    on_every_device<Conv>(
        {{"one", {.n = 1, .h = 1, .w = 1, .c = 1, .k = 1}},
         {"stem_7x7_stride_2", {.n = 2, .h = 32, .w = 32, .c = 3, .k = 64, .r = 7, .s = 7, .stride = 2, .padding = 3}},
         {"pointwise", {.n = 2, .h = 7, .w = 7, .c = 64, .k = 128}},
         {"pointwise_stride_2", {.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .stride = 2}},
         {"pointwise_stride_2_channels_4", {.n = 3, .h = 64, .w = 64, .c = 4, .k = 8, .stride = 2}},
         {"pointwise_stride_2_channels_8", {.n = 2, .h = 64, .w = 64, .c = 8, .k = 8, .stride = 2}},
         {"window_3x3", {.n = 2, .h = 14, .w = 14, .c = 32, .k = 32, .r = 3, .s = 3, .padding = 1}},
         {"winograd_80", {.n = 3, .h = 13, .w = 9, .c = 80, .k = 64, .r = 3, .s = 3, .padding = 1, .accumulate = true}},
         {"winograd_96_no_padding", {.n = 2, .h = 12, .w = 12, .c = 64, .k = 96, .r = 3, .s = 3}},
         {"window_3x3_stride_2_accumulated",
          {.n = 1, .h = 15, .w = 15, .c = 16, .k = 24, .r = 3, .s = 3, .stride = 2, .padding = 1, .accumulate = true}},
         {"odd_3x2_no_padding", {.n = 3, .h = 11, .w = 9, .c = 5, .k = 7, .r = 3, .s = 2}},
         {"odd_2x5_stride_3", {.n = 1, .h = 10, .w = 13, .c = 6, .k = 10, .r = 2, .s = 5, .stride = 3, .padding = 1}},
         {"groups_4", {.n = 2, .h = 9, .w = 9, .c = 32, .k = 64, .r = 3, .s = 3, .padding = 1, .groups = 4}},
         {"depthwise", {.n = 2, .h = 9, .w = 9, .c = 24, .k = 24, .r = 3, .s = 3, .padding = 1, .groups = 24}}}),
    name_of_case<Conv>);

}  // namespace
}  // namespace assay::ops::parity
