// Gradients of batch norm, layer norm, RMS norm and pooling.
#include "tests/gradient/frame.h"

namespace assay::ops::gradient {
namespace {

struct Batch {
  std::int64_t rows, channels;
  bool relu = false, residual = false, join = false, accumulate = false;
};

TEST(BatchNormGradient, OfEveryInput) {
  for (const Batch& s :
       {Batch{.rows = 2, .channels = 1}, Batch{.rows = 7, .channels = 3, .relu = true, .accumulate = true},
        Batch{.rows = 12, .channels = 5, .relu = true, .residual = true, .join = true},
        Batch{.rows = 9, .channels = 2, .residual = true, .accumulate = true}}) {
    SCOPED_TRACE(s.rows);
    const BatchNormDesc d{.rows = s.rows,
                          .channels = s.channels,
                          .dtype = DType::f64,
                          .relu = s.relu,
                          .residual = s.residual,
                          .accumulate = s.accumulate};
    const std::int64_t count = s.rows * s.channels;
    Values x = normal(count, "x"), residual = normal(count, "residual"), scale = normal(s.channels, "scale"),
           shift = normal(s.channels, "shift");
    // If two branches join, y reaches the loss on two paths.
    const Values dy = normal(count, "dy"), other = normal(count, "other");
    Values running_mean(scale.size()), running_variance(scale.size(), 1), y(x.size()), mean(scale.size()),
        inverse(scale.size());
    const auto forward = make(&Backend::make<BatchNormForward>, d);
    const auto loss = [&] {
      run(*forward, BatchNormForward::Args{.x = x.data(),
                                           .residual = residual.data(),
                                           .scale = scale.data(),
                                           .shift = shift.data(),
                                           .running_mean = running_mean.data(),
                                           .running_variance = running_variance.data(),
                                           .y = y.data(),
                                           .saved_mean = mean.data(),
                                           .saved_inverse_deviation = inverse.data()});
      return dot(y, dy) + (s.join ? dot(y, other) : 0);
    };
    loss();
    Values dx = space(count), dresidual = space(count);
    Values dscale = s.accumulate ? Values(scale.size(), 0.5) : space(s.channels), dshift = dscale;
    run(*make(&Backend::make<BatchNormBackward>, d),
        BatchNormBackward::Args{.dy = dy.data(),
                                .dy_other = s.join ? other.data() : nullptr,
                                .x = x.data(),
                                .y = y.data(),
                                .scale = scale.data(),
                                .saved_mean = mean.data(),
                                .saved_inverse_deviation = inverse.data(),
                                .dx = dx.data(),
                                .dresidual = dresidual.data(),
                                .dscale = dscale.data(),
                                .dshift = dshift.data()});
    if (s.accumulate)
      for (Values* gradient : {&dscale, &dshift})
        for (double& g : *gradient) g -= 0.5;
    std::vector<Variable> variables{{"x", &x, &dx}, {"scale", &scale, &dscale}, {"shift", &shift, &dshift}};
    if (s.residual) variables.push_back({"residual", &residual, &dresidual});
    expect_gradients(loss, variables);
  }
}

// As in PyTorch, the running variance averages unbiased variances; without update_running nothing changes.
TEST(BatchNorm, RunningStatistics) {
  const BatchNormDesc d{.rows = 4, .channels = 1, .dtype = DType::f64, .momentum = 0.25};
  const Values x{1, 2, 3, 6}, one{1}, zero{0};
  Values y(4), saved(1), mean{10}, variance{2};
  BatchNormForward::Args args{.x = x.data(),
                              .scale = one.data(),
                              .shift = zero.data(),
                              .running_mean = mean.data(),
                              .running_variance = variance.data(),
                              .y = y.data(),
                              .saved_mean = saved.data(),
                              .saved_inverse_deviation = saved.data()};
  const auto op = make(&Backend::make<BatchNormForward>, d);
  run(*op, args);
  EXPECT_DOUBLE_EQ(mean[0], 0.75 * 10 + 0.25 * 3);
  EXPECT_DOUBLE_EQ(variance[0], 0.75 * 2 + 0.25 * 14 / 3);
  args.update_running = false;
  run(*op, args);
  EXPECT_DOUBLE_EQ(mean[0], 8.25);
  EXPECT_DOUBLE_EQ(variance[0], 0.75 * 2 + 0.25 * 14 / 3);
}

struct Rows {
  NormKind kind;
  std::int64_t rows, columns;
  bool residual = false, bias = false, accumulate = false;
};

TEST(NormGradient, OfEveryInput) {
  for (const Rows& s :
       {Rows{.kind = NormKind::layer, .rows = 1, .columns = 2, .bias = true},
        Rows{.kind = NormKind::layer, .rows = 5, .columns = 7, .residual = true, .bias = true, .accumulate = true},
        Rows{.kind = NormKind::layer, .rows = 3, .columns = 9, .residual = true},
        Rows{.kind = NormKind::rms, .rows = 1, .columns = 1},
        Rows{.kind = NormKind::rms, .rows = 4, .columns = 11, .residual = true, .accumulate = true},
        Rows{.kind = NormKind::rms, .rows = 3, .columns = 8}}) {
    SCOPED_TRACE(fmt::format("{} x {}", s.rows, s.columns));
    const NormDesc d{.kind = s.kind,
                     .rows = s.rows,
                     .columns = s.columns,
                     .dtype = DType::f64,
                     .residual = s.residual,
                     .bias = s.bias,
                     .epsilon = 1e-2,
                     .accumulate = s.accumulate};
    const std::int64_t count = s.rows * s.columns;
    Values x = normal(count, "x"), residual = normal(count, "residual"), weight = normal(s.columns, "weight"),
           bias = normal(s.columns, "bias");
    const Values dy = normal(count, "dy"), dsum = normal(count, "dsum");
    Values y = space(count), sum = space(count), mean = space(s.rows), inverse = space(s.rows);
    const auto forward = make(&Backend::make<NormForward>, d);
    // The sum also reaches the loss directly, as in a residual stream.
    const auto loss = [&] {
      run(*forward, NormForward::Args{.x = x.data(),
                                      .residual = residual.data(),
                                      .sum = sum.data(),
                                      .weight = weight.data(),
                                      .bias = bias.data(),
                                      .y = y.data(),
                                      .saved_mean = mean.data(),
                                      .saved_inverse_deviation = inverse.data()});
      return dot(y, dy) + (s.residual ? dot(sum, dsum) : 0);
    };
    loss();
    Values dx = space(count);
    Values dweight = s.accumulate ? Values(weight.size(), 0.5) : space(s.columns), dbias = dweight;
    run(*make(&Backend::make<NormBackward>, d), NormBackward::Args{.dy = dy.data(),
                                                                   .sum = s.residual ? sum.data() : x.data(),
                                                                   .weight = weight.data(),
                                                                   .saved_mean = mean.data(),
                                                                   .saved_inverse_deviation = inverse.data(),
                                                                   .dsum = s.residual ? dsum.data() : nullptr,
                                                                   .dx = dx.data(),
                                                                   .dweight = dweight.data(),
                                                                   .dbias = dbias.data()});
    if (s.accumulate)
      for (Values* gradient : {&dweight, &dbias})
        for (double& g : *gradient) g -= 0.5;
    std::vector<Variable> variables{{"x", &x, &dx}, {"weight", &weight, &dweight}};
    if (s.residual) variables.push_back({"residual", &residual, &dx});
    if (s.kind == NormKind::layer && s.bias) variables.push_back({"bias", &bias, &dbias});
    expect_gradients(loss, variables);
  }
}

TEST(PoolGradient, OfTheImage) {
  const auto maximum = PoolKind::maximum, average = PoolKind::average;
  for (PoolDesc d :
       {PoolDesc{.kind = maximum, .n = 1, .h = 1, .w = 1, .c = 1},
        PoolDesc{
            .kind = maximum, .n = 2, .h = 7, .w = 6, .c = 3, .window_h = 3, .window_w = 3, .stride = 2, .padding = 1},
        PoolDesc{.kind = maximum, .n = 1, .h = 5, .w = 5, .c = 2, .window_h = 3, .window_w = 2},
        PoolDesc{.kind = average, .n = 3, .h = 4, .w = 5, .c = 2, .window_h = 4, .window_w = 5},
        PoolDesc{.kind = average,
        .n = 1,
        .h = 7,
        .w = 5,
        .c = 3,
        .window_h = 3,
        .window_w = 3,
        .stride = 2,
        .padding = 1}}) {
    SCOPED_TRACE(fmt::format("{} x {}", d.window_h, d.window_w));
    d.dtype = DType::f64;
    Values x = normal(d.n * d.h * d.w * d.c, "x");
    const Values dy = normal(d.n * d.p() * d.q() * d.c, "dy");
    Values y(dy.size()), dx = space(std::ssize(x));
    const auto forward = make(&Backend::make<PoolForward>, d);
    std::vector<std::byte> saved(forward->saved_bytes());
    const auto loss = [&] {
      run(*forward, PoolForward::Args{.x = x.data(), .y = y.data(), .saved = saved.data()});
      return dot(y, dy);
    };
    loss();
    run(*make(&Backend::make<PoolBackward>, d),
        PoolBackward::Args{.dy = dy.data(), .saved = saved.data(), .dx = dx.data()});
    expect_gradients(loss, {{"x", &x, &dx}});
  }
}

}  // namespace
}  // namespace assay::ops::gradient
