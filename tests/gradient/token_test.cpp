// Gradients of attention, rotary embedding, embedding, activations and cross-entropy.
#include "tests/gradient/frame.h"

#include <cmath>
#include <limits>

namespace assay::ops::gradient {
namespace {

struct Attention {
  AttentionDesc desc;
  std::int64_t gap;  // elements between the rows of two tokens
  std::vector<std::int32_t> lengths;
};

TEST(AttentionGradient, OfQueriesKeysAndValues) {
  for (const Attention& s : std::vector<Attention>{
           {{.batch = 1, .seq = 1, .heads = 1, .kv_heads = 1, .head_dim = 1}, 0, {}},
           {{.batch = 2, .seq = 5, .heads = 2, .kv_heads = 2, .head_dim = 3}, 0, {}},
           {{.batch = 1, .seq = 7, .heads = 4, .kv_heads = 2, .head_dim = 2, .scale = 0.7}, 3, {}},
           {{.batch = 1, .seq = 6, .heads = 3, .kv_heads = 1, .head_dim = 4, .causal = false}, 1, {}},
           {{.batch = 3, .seq = 4, .heads = 2, .kv_heads = 1, .head_dim = 3, .causal = false}, 2, {4, 2, 0}},
           {{.batch = 2, .seq = 5, .heads = 2, .kv_heads = 2, .head_dim = 2}, 0, {3, 5}}}) {
    AttentionDesc d = s.desc;
    SCOPED_TRACE(fmt::format("{} tokens, {} of {} heads", d.seq, d.kv_heads, d.heads));
    d.dtype = DType::f64;
    d.q_stride = d.heads * d.head_dim + s.gap;
    d.k_stride = d.v_stride = d.kv_heads * d.head_dim + s.gap;
    d.lengths = !s.lengths.empty();
    const std::int64_t tokens = d.batch * d.seq, count = tokens * d.heads * d.head_dim;
    Values q = normal(tokens * d.q_stride, "q"), k = normal(tokens * d.k_stride, "k"),
           v = normal(tokens * d.v_stride, "v");
    const Values dout = normal(count, "dout");
    Values out = space(count), log_sum_exp = space(tokens * d.heads);
    const auto forward = make(&Backend::make<AttentionForward>, d);
    const auto loss = [&] {
      run(*forward, AttentionForward::Args{.q = q.data(),
                                           .k = k.data(),
                                           .v = v.data(),
                                           .lengths = s.lengths.data(),
                                           .out = out.data(),
                                           .log_sum_exp = log_sum_exp.data()});
      return dot(out, dout);
    };
    loss();
    // Gaps between rows have no gradient and are not written.
    Values dq(q.size()), dk(k.size()), dv(v.size());
    run(*make(&Backend::make<AttentionBackward>, d), AttentionBackward::Args{.q = q.data(),
                                                                             .k = k.data(),
                                                                             .v = v.data(),
                                                                             .lengths = s.lengths.data(),
                                                                             .out = out.data(),
                                                                             .dout = dout.data(),
                                                                             .log_sum_exp = log_sum_exp.data(),
                                                                             .dq = dq.data(),
                                                                             .dk = dk.data(),
                                                                             .dv = dv.data()});
    expect_gradients(loss, {{"q", &q, &dq}, {"k", &k, &dk}, {"v", &v, &dv}});
  }
}

TEST(Attention, MasksFutureKeysAndPadding) {
  // The second query of a causal head sees two keys; its scores are 0 and ln 3.
  AttentionDesc d{.batch = 1,
                  .seq = 2,
                  .heads = 1,
                  .kv_heads = 1,
                  .head_dim = 1,
                  .scale = 1,
                  .q_stride = 1,
                  .k_stride = 1,
                  .v_stride = 1,
                  .dtype = DType::f64};
  const Values q{1, 1}, k{0, std::log(3.0)}, v{8, 4};
  const std::vector<std::int32_t> lengths{1};
  Values out = space(2), log_sum_exp = space(2);
  AttentionForward::Args args{.q = q.data(),
                              .k = k.data(),
                              .v = v.data(),
                              .lengths = lengths.data(),
                              .out = out.data(),
                              .log_sum_exp = log_sum_exp.data()};
  run(*make(&Backend::make<AttentionForward>, d), args);
  EXPECT_DOUBLE_EQ(out[0], 8);
  EXPECT_DOUBLE_EQ(out[1], 0.25 * 8 + 0.75 * 4);
  EXPECT_DOUBLE_EQ(log_sum_exp[1], std::log(4.0));
  d.causal = false;
  run(*make(&Backend::make<AttentionForward>, d), args);
  EXPECT_DOUBLE_EQ(out[0], 5);
  d.lengths = true;
  run(*make(&Backend::make<AttentionForward>, d), args);
  EXPECT_DOUBLE_EQ(out[0], 8);
  EXPECT_DOUBLE_EQ(out[1], 0);
}

TEST(RotaryGradient, IsTheInverseRotation) {
  for (RotaryDesc d : {RotaryDesc{.batch = 1, .seq = 1, .heads = 1, .head_dim = 2, .stride = 2},
                       RotaryDesc{.batch = 2, .seq = 5, .heads = 3, .head_dim = 6, .stride = 21}}) {
    d.dtype = DType::f64;
    const std::int64_t count = d.batch * d.seq * d.stride;
    Values cosine, sine;
    for (const double angle : normal(d.seq * d.head_dim / 2, "angles")) {
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
    Values x = normal(count, "x"), y;
    const Values dy = normal(count, "dy");
    const auto turn = make(&Backend::make<Rotary>, d);
    const auto loss = [&] {
      y = x;
      run(*turn, Rotary::Args{.x = y.data(), .cosine = cosine.data(), .sine = sine.data()});
      return dot(y, dy);
    };
    loss();
    Values dx = dy;
    d.inverse = true;
    run(*make(&Backend::make<Rotary>, d), Rotary::Args{.x = dx.data(), .cosine = cosine.data(), .sine = sine.data()});
    expect_gradients(loss, {{"x", &x, &dx}});
  }
}

TEST(EmbeddingGradient, OfEveryTable) {
  for (EmbeddingDesc d :
       {EmbeddingDesc{.batch = 1, .seq = 1, .vocabulary = 2, .width = 1},
        EmbeddingDesc{.batch = 3, .seq = 4, .vocabulary = 5, .width = 3, .positions = true, .types = 2},
        EmbeddingDesc{.batch = 2, .seq = 7, .vocabulary = 6, .width = 2, .positions = true, .accumulate_table = true},
        EmbeddingDesc{.batch = 2,
        .seq = 3,
        .vocabulary = 9,
        .width = 4,
        .positions = true,
        .types = 3,
        .accumulate_others = true}}) {
    SCOPED_TRACE(d.width);
    d.dtype = d.parameters = d.gradient = DType::f64;
    const std::int64_t tokens = d.batch * d.seq;
    const auto ids = integers(tokens, d.vocabulary, "ids");
    const auto type_ids = integers(tokens, std::max<std::int64_t>(d.types, 1), "type ids");
    Values table = normal(d.vocabulary * d.width, "table"), positions = normal(d.seq * d.width, "positions"),
           types = normal(d.types * d.width, "types");
    const Values dy = normal(tokens * d.width, "dy");
    Values y = space(tokens * d.width);
    const auto forward = make(&Backend::make<EmbeddingForward>, d);
    const auto loss = [&] {
      run(*forward, EmbeddingForward::Args{.ids = ids.data(),
                                           .type_ids = type_ids.data(),
                                           .table = table.data(),
                                           .positions = positions.data(),
                                           .types = types.data(),
                                           .y = y.data()});
      return dot(y, dy);
    };
    loss();
    const auto start = [](const Values& of, bool accumulate) {
      return accumulate ? Values(of.size(), 0.5) : space(std::ssize(of));
    };
    Values dtable = start(table, d.accumulate_table), dpositions = start(positions, d.accumulate_others),
           dtypes = start(types, d.accumulate_others);
    run(*make(&Backend::make<EmbeddingBackward>, d), EmbeddingBackward::Args{.ids = ids.data(),
                                                                             .type_ids = type_ids.data(),
                                                                             .dy = dy.data(),
                                                                             .dtable = dtable.data(),
                                                                             .dpositions = dpositions.data(),
                                                                             .dtypes = dtypes.data()});
    if (d.accumulate_table)
      for (double& g : dtable) g -= 0.5;
    if (d.accumulate_others)
      for (Values* gradient : {&dpositions, &dtypes})
        for (double& g : *gradient) g -= 0.5;
    std::vector<Variable> variables{{"table", &table, &dtable}};
    if (d.positions) variables.push_back({"positions", &positions, &dpositions});
    if (d.types > 0) variables.push_back({"types", &types, &dtypes});
    expect_gradients(loss, variables);
  }
}

TEST(ActivationGradient, OfEveryKind) {
  for (const auto kind : {ActivationKind::gelu_tanh, ActivationKind::gelu_erf, ActivationKind::silu_gate})
    for (const std::int64_t columns : {1, 7, 16}) {
      const ActivationDesc d{.kind = kind, .rows = 3, .columns = columns, .dtype = DType::f64};
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(kind), columns));
      Values x = normal((kind == ActivationKind::silu_gate ? 2 : 1) * 3 * columns, "x");
      for (double& value : x) value *= 2;
      const Values dy = normal(3 * columns, "dy");
      Values y = space(3 * columns), dx = space(std::ssize(x));
      const auto forward = make(&Backend::make<ActivationForward>, d);
      const auto loss = [&] {
        run(*forward, ActivationForward::Args{.x = x.data(), .y = y.data()});
        return dot(y, dy);
      };
      run(*make(&Backend::make<ActivationBackward>, d),
          ActivationBackward::Args{.x = x.data(), .dy = dy.data(), .dx = dx.data()});
      expect_gradients(loss, {{"x", &x, &dx}});
    }
}

TEST(CrossEntropyGradient, OfTheLogits) {
  for (CrossEntropyDesc d :
       {CrossEntropyDesc{.rows = 1, .classes = 1, .stride = 1}, CrossEntropyDesc{.rows = 5, .classes = 7, .stride = 7},
        CrossEntropyDesc{.rows = 6, .classes = 5, .stride = 8, .smoothing = 0.1},
        CrossEntropyDesc{.rows = 4, .classes = 11, .stride = 11, .smoothing = 0.3}}) {
    SCOPED_TRACE(d.classes);
    d.dtype = DType::f64;
    auto targets = integers(d.rows, d.classes, "targets");
    if (d.rows > 1) targets[1] = d.ignored;
    const float scale = 0.375f;
    Values logits = normal(d.rows * d.stride, "logits"), work, row_losses = space(d.rows);
    LossSums sums;
    const auto op = make(&Backend::make<CrossEntropy>, d);
    const auto loss = [&] {
      work = logits;
      sums = {};
      run(*op, CrossEntropy::Args{.logits = work.data(),
                                  .targets = targets.data(),
                                  .scale = &scale,
                                  .sums = &sums,
                                  .row_losses = row_losses.data()});
      return sums.loss * static_cast<double>(scale);
    };
    loss();
    double total = 0;
    for (const double row : row_losses) total += row;
    EXPECT_NEAR(total, sums.loss, 1e-12);
    EXPECT_EQ(sums.valid, d.rows - (d.rows > 1));
    Values gradient = work;
    for (std::int64_t i = 0; i < std::ssize(gradient); ++i)
      if (i % d.stride >= d.classes) {
        EXPECT_EQ(gradient[static_cast<std::size_t>(i)], logits[static_cast<std::size_t>(i)]) << "beyond the classes";
        gradient[static_cast<std::size_t>(i)] = 0;
      }
    expect_gradients(loss, {{"logits", &logits, &gradient}});
  }
}

TEST(CrossEntropy, CountsCorrectRows) {
  const CrossEntropyDesc d{.rows = 3, .classes = 3, .stride = 3, .dtype = DType::f64, .gradient = false};
  Values logits{0, 1, 1, 5, 2, 1, 0, 0, 0};
  const std::vector<std::int32_t> targets{1, 1, -100};  // correct (the first of two equal logits), wrong, ignored
  const float scale = 1;
  LossSums sums{.loss = 1, .valid = 10, .correct = 4};
  const Values before = logits;
  run(*make(&Backend::make<CrossEntropy>, d),
      CrossEntropy::Args{.logits = logits.data(), .targets = targets.data(), .scale = &scale, .sums = &sums});
  EXPECT_EQ(logits, before);
  EXPECT_EQ(sums.valid, 12);
  EXPECT_EQ(sums.correct, 5);
  const double first = std::log(1 + 2 * std::exp(1.0)) - 1;
  const double second = std::log(std::exp(5.0) + std::exp(2.0) + std::exp(1.0)) - 2;
  EXPECT_NEAR(sums.loss, 1 + first + second, 1e-12);
}

}  // namespace
}  // namespace assay::ops::gradient
