// Gradients of matrix products with their epilogues, and of convolutions.
#include "tests/gradient/frame.h"

namespace assay::ops::gradient {
namespace {

constexpr DType f64 = DType::f64;

MatmulDesc product(std::int64_t m, std::int64_t n, std::int64_t k) {
  MatmulDesc d{.m = m, .n = n, .k = k, .a = f64, .b = f64, .out = f64, .pack_from = f64, .bias_type = f64};
  return d;
}

struct Layer {
  std::int64_t rows, in, hidden, out;
  Epilogue forward, backward;
  bool accumulate;
};

// out = gelu(x w^T + bias) v^T: the gradients of both products, of the bias by row sums, and through the epilogue.
TEST(MatmulGradient, OfAFeedForwardLayer) {
  for (const Layer& s : {Layer{1, 1, 1, 1, Epilogue::gelu_tanh, Epilogue::gelu_tanh_gradient, false},
                         Layer{5, 7, 3, 4, Epilogue::gelu_erf, Epilogue::gelu_erf_gradient, false},
                         Layer{9, 4, 11, 5, Epilogue::gelu_tanh, Epilogue::gelu_tanh_gradient, true}}) {
    SCOPED_TRACE(s.rows);
    Values x = normal(s.rows * s.in, "x"), w = normal(s.hidden * s.in, "w"), bias = normal(s.hidden, "bias"),
           v = normal(s.out * s.hidden, "v");
    const Values dout = normal(s.rows * s.out, "dout");
    Values z = space(s.rows * s.hidden), a = space(s.rows * s.hidden), out = space(s.rows * s.out);

    MatmulDesc first = product(s.rows, s.hidden, s.in), second = product(s.rows, s.out, s.hidden);
    first.transpose_b = second.transpose_b = true;
    first.bias = true;
    first.epilogue = s.forward;
    first.form = WeightForm::packed;
    const auto up = make(&Backend::make<Matmul>, first), down = make(&Backend::make<Matmul>, second);
    Values packed(up->packed_bytes() / sizeof(double));
    const auto loss = [&] {
      up->pack(stream(), w.data(), packed.data());
      run(*up, MatmulArgs{.a = x.data(), .b = packed.data(), .out = a.data(), .bias = bias.data(), .aux = z.data()});
      run(*down, MatmulArgs{.a = a.data(), .b = v.data(), .out = out.data()});
      return dot(out, dout);
    };
    loss();

    MatmulDesc to_z = product(s.rows, s.hidden, s.out), to_x = product(s.rows, s.in, s.hidden);
    to_z.epilogue = s.backward;
    MatmulDesc to_w = product(s.hidden, s.in, s.rows), to_v = product(s.out, s.hidden, s.rows);
    to_w.transpose_a = to_v.transpose_a = true;
    to_w.row_sums = true;
    to_w.accumulate = s.accumulate;
    Values dz = space(s.rows * s.hidden), dx = space(s.rows * s.in), dv = space(s.out * s.hidden);
    const double start = 0.5;
    Values dw = s.accumulate ? Values(w.size(), start) : space(s.hidden * s.in);
    Values dbias = s.accumulate ? Values(bias.size(), start) : space(s.hidden);
    run(*make(&Backend::make<Matmul>, to_z),
        MatmulArgs{.a = dout.data(), .b = v.data(), .out = dz.data(), .aux = z.data()});
    run(*make(&Backend::make<Matmul>, to_x), MatmulArgs{.a = dz.data(), .b = w.data(), .out = dx.data()});
    run(*make(&Backend::make<Matmul>, to_v), MatmulArgs{.a = dout.data(), .b = a.data(), .out = dv.data()});
    run(*make(&Backend::make<Matmul>, to_w),
        MatmulArgs{.a = dz.data(), .b = x.data(), .out = dw.data(), .row_sums = dbias.data()});
    if (s.accumulate) {
      for (double& g : dw) g -= start;
      for (double& g : dbias) g -= start;
    }
    expect_gradients(loss, {{"x", &x, &dx}, {"w", &w, &dw}, {"bias", &bias, &dbias}, {"v", &v, &dv}});
  }
}

TEST(ConvGradient, OfInputAndWeights) {
  for (ConvDesc d :
       {ConvDesc{.n = 1, .h = 1, .w = 1, .c = 1, .k = 1},
        ConvDesc{.n = 2, .h = 5, .w = 4, .c = 3, .k = 2, .r = 3, .s = 3},
        ConvDesc{.n = 1, .h = 9, .w = 9, .c = 2, .k = 3, .r = 7, .s = 7, .stride = 2, .padding = 3},
        ConvDesc{.n = 2, .h = 6, .w = 7, .c = 2, .k = 4, .stride = 2},
        ConvDesc{.n = 1, .h = 7, .w = 6, .c = 4, .k = 6, .r = 3, .s = 2, .stride = 3, .padding = 1, .groups = 2},
        ConvDesc{
            .n = 2, .h = 5, .w = 5, .c = 3, .k = 3, .r = 3, .s = 3, .padding = 1, .groups = 3, .accumulate = true}}) {
    SCOPED_TRACE(fmt::format("{}x{}x{}x{}", d.n, d.h, d.w, d.c));
    d.dtype = d.pack_from = d.gradient = f64;
    Values x = normal(d.n * d.h * d.w * d.c, "x"), w = normal(d.k * d.r * d.s * d.c / d.groups, "w");
    const Values dy = normal(d.n * d.p() * d.q() * d.k, "dy");
    Values y(dy.size()), packed(w.size()), dx = space(std::ssize(x));
    Values dw = d.accumulate ? Values(w.size(), 0.5) : space(std::ssize(w));
    const auto forward = make(&Backend::make<ConvForward>, d);
    const auto loss = [&] {
      forward->pack(stream(), w.data(), packed.data());
      run(*forward, ConvForward::Args{.x = x.data(), .packed = packed.data(), .y = y.data()});
      return dot(y, dy);
    };
    loss();
    const auto data = make(&Backend::make<ConvBackwardData>, d);
    data->pack(stream(), w.data(), packed.data());
    run(*data, ConvBackwardData::Args{.dy = dy.data(), .packed = packed.data(), .dx = dx.data()});
    run(*make(&Backend::make<ConvBackwardWeights>, d),
        ConvBackwardWeights::Args{.x = x.data(), .dy = dy.data(), .dw = dw.data()});
    if (d.accumulate)
      for (double& g : dw) g -= 0.5;
    expect_gradients(loss, {{"x", &x, &dx}, {"w", &w, &dw}});
  }
}

}  // namespace
}  // namespace assay::ops::gradient
