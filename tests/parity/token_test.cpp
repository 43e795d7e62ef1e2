// Embedding, rotary embedding and cross-entropy against the oracle.
#include "tests/parity/frame.h"

#include <cmath>
#include <limits>

namespace assay::ops::parity {
namespace {

struct Embedding {
  std::string name;
  EmbeddingDesc desc;
};

class EmbeddingParity : public Parity<Embedding> {
 protected:
  EmbeddingDesc desc() const {
    EmbeddingDesc d = shape().desc;
    d.dtype = dtype();
    return d;
  }
};

const std::int32_t* put_integers(Side& side, const Tensor& tensor) {
  return static_cast<const std::int32_t*>(side.put(tensor));
}

TEST_P(EmbeddingParity, Forward) {
  const EmbeddingDesc d = desc();
  const std::int64_t tokens = d.batch * d.seq;
  expect_agreement(kind(), &Backend::make<EmbeddingForward>, d, [&](Side& side, EmbeddingForward& op) -> Outputs {
    EmbeddingForward::Args args;
    args.ids = put_integers(side, Tensor::integers(tokens, d.vocabulary, "ids"));
    args.table = side.put(Tensor::normal(d.parameters, d.vocabulary * d.width, "table"));
    if (d.positions) args.positions = side.put(Tensor::normal(d.parameters, (d.seq + 3) * d.width, "positions"));
    if (d.types > 0) args.type_ids = put_integers(side, Tensor::integers(tokens, d.types, "type ids"));
    if (d.types > 0) args.types = side.put(Tensor::normal(d.parameters, d.types * d.width, "types"));
    args.y = side.space(d.dtype, tokens * d.width);
    side.run(op, args);
    return {{"y", side.get(args.y, d.dtype, tokens * d.width), tolerance_of(OpGroup::embedding, d.dtype, d.dtype, 3)}};
  });
}

TEST_P(EmbeddingParity, Backward) {
  const EmbeddingDesc d = desc();
  const std::int64_t tokens = d.batch * d.seq;
  expect_agreement(kind(), &Backend::make<EmbeddingBackward>, d, [&](Side& side, EmbeddingBackward& op) -> Outputs {
    const auto gradient = [&](std::int64_t rows, bool accumulate) {
      const std::int64_t count = rows * d.width;
      return accumulate ? side.put(Tensor::normal(d.gradient, count, "gradient")) : side.space(d.gradient, count);
    };
    EmbeddingBackward::Args args;
    args.ids = put_integers(side, Tensor::integers(tokens, d.vocabulary, "ids"));
    if (d.types > 0) args.type_ids = put_integers(side, Tensor::integers(tokens, d.types, "type ids"));
    args.dy = side.put(Tensor::normal(d.dtype, tokens * d.width, "dy"));
    args.dtable = gradient(d.vocabulary, d.accumulate_table);
    if (d.positions) args.dpositions = gradient(d.seq, d.accumulate_others);
    if (d.types > 0) args.dtypes = gradient(d.types, d.accumulate_others);
    side.run(op, args);
    const auto written = [&](const char* name, const void* data, std::int64_t rows) {
      return Output{name, side.get(data, d.gradient, rows * d.width),
                    tolerance_of(OpGroup::embedding, d.gradient, d.gradient, tokens)};
    };
    Outputs outputs{written("dtable", args.dtable, d.vocabulary)};
    if (d.positions) outputs.push_back(written("dpositions", args.dpositions, d.seq));
    if (d.types > 0) outputs.push_back(written("dtypes", args.dtypes, d.types));
    return outputs;
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, EmbeddingParity,
    on_every_device<Embedding>(
        {{"one", {.batch = 1, .seq = 1, .vocabulary = 1, .width = 1}},
         {"table_3x17", {.batch = 3, .seq = 17, .vocabulary = 101, .width = 33}},
         {"tied_positions_2x32",
          {.batch = 2, .seq = 32, .vocabulary = 50, .width = 64, .positions = true, .accumulate_table = true}},
         {"positions_types_5x13", {.batch = 5, .seq = 13, .vocabulary = 7, .width = 48, .positions = true, .types = 2}},
         {"many_of_an_id_5x103", {.batch = 5, .seq = 103, .vocabulary = 3, .width = 24, .positions = true, .types = 1}},
         {"wide_2x40", {.batch = 2, .seq = 40, .vocabulary = 60, .width = 1100}},
         {"long_ids_1x300", {.batch = 1, .seq = 300, .vocabulary = 70001, .width = 9}},
         {"positions_types_accumulated",
          {.batch = 2,
           .seq = 64,
           .vocabulary = 3,
           .width = 20,
           .positions = true,
           .types = 3,
           .accumulate_table = true,
           .accumulate_others = true}}}),
    name_of_case<Embedding>);

struct Rotation {
  std::string name;
  RotaryDesc desc;
};

using RotaryParity = Parity<Rotation>;

TEST_P(RotaryParity, InPlace) {
  RotaryDesc d = shape().desc;
  d.dtype = dtype();
  const DType stored = statistic(d.dtype);
  const std::int64_t pairs = d.head_dim / 2, count = d.batch * d.seq * d.stride;
  Tensor cosine(stored, d.seq * pairs), sine(stored, d.seq * pairs);
  for (std::int64_t i = 0; i < d.seq * pairs; ++i) {
    const double angle = static_cast<double>(i / pairs) *
                         std::pow(10000.0, -static_cast<double>(i % pairs) / static_cast<double>(pairs));
    cosine.set(i, std::cos(angle));
    sine.set(i, std::sin(angle));
  }
  expect_agreement(kind(), &Backend::make<Rotary>, d, [&](Side& side, Rotary& op) -> Outputs {
    Rotary::Args args;
    args.x = side.put(Tensor::normal(d.dtype, count, "x"));
    args.cosine = side.put(cosine);
    args.sine = side.put(sine);
    side.run(op, args);
    return {{"x", side.get(args.x, d.dtype, count), tolerance_of(OpGroup::rotary, d.dtype, d.dtype, 2)}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, RotaryParity,
    on_every_device<Rotation>(
        {{"one", {.batch = 1, .seq = 1, .heads = 1, .head_dim = 2, .stride = 2}},
         {"dense_2x33_4_heads", {.batch = 2, .seq = 33, .heads = 4, .head_dim = 64, .stride = 256}},
         {"grouped_1x700_7_heads", {.batch = 1, .seq = 700, .heads = 7, .head_dim = 16, .stride = 112}},
         {"in_a_wider_row", {.batch = 2, .seq = 17, .heads = 5, .head_dim = 16, .stride = 144}},
         {"odd_pairs_back", {.batch = 1, .seq = 40, .heads = 3, .head_dim = 6, .stride = 19, .inverse = true}}}),
    name_of_case<Rotation>);

struct Loss {
  std::string name;
  CrossEntropyDesc desc;
  std::int64_t ignore_every = 0;  // every n-th target is ignored; 0: none
  double deviation = 1;           // of the logits
  std::int64_t mask_every = 0;    // every n-th logit is -inf, including targets'; 0: none
};

using CrossEntropyParity = Parity<Loss>;

TEST_P(CrossEntropyParity, InPlace) {
  CrossEntropyDesc d = shape().desc;
  d.dtype = dtype();
  std::vector<std::int32_t> targets;
  const Tensor drawn = Tensor::integers(d.rows, d.classes, "targets");
  for (std::int64_t r = 0; r < d.rows; ++r) {
    const bool ignored = shape().ignore_every > 0 && r % shape().ignore_every == 0;
    targets.push_back(ignored ? d.ignored : static_cast<std::int32_t>(drawn.at(r)));
  }
  expect_agreement(kind(), &Backend::make<CrossEntropy>, d, [&](Side& side, CrossEntropy& op) -> Outputs {
    const std::int64_t count = (d.rows - 1) * d.stride + d.classes;
    Tensor scale(DType::f32, 1);
    scale.set(0, 0.37);
    CrossEntropy::Args args;
    Tensor logits = Tensor::normal(d.dtype, count, "logits", shape().deviation);
    for (std::int64_t i = 0; shape().mask_every > 0 && i < count; i += shape().mask_every)
      logits.set(i, -std::numeric_limits<double>::infinity());
    args.logits = side.put(logits);
    args.targets = put_integers(side, Tensor::integers(targets));
    args.scale = static_cast<const float*>(side.put(scale));
    args.row_losses = side.space(statistic(d.dtype), d.rows);
    Tensor sums(DType::i64, sizeof(LossSums) / sizeof(std::int64_t));
    auto* start = static_cast<LossSums*>(sums.data());
    *start = {.loss = 2.5, .valid = 3, .correct = 1};  // added to
    args.sums = static_cast<LossSums*>(side.put(sums));
    side.run(op, args);
    const Tensor added = side.get(args.sums, DType::i64, sums.count());
    const auto* ended = static_cast<const LossSums*>(added.data());
    Tensor loss(DType::f64, 1), counts(DType::f64, 2);
    loss.set(0, ended->loss);
    counts.set(0, static_cast<double>(ended->valid));
    counts.set(1, static_cast<double>(ended->correct));
    const DType sum_type = statistic(d.dtype);
    const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::cross_entropy, d.dtype, out, d.classes); };
    Outputs outputs{{"loss", loss, tolerance(sum_type)},
                    {"counts", counts, {}},
                    {"row losses", side.get(args.row_losses, sum_type, d.rows), tolerance(sum_type)}};
    if (d.gradient) outputs.push_back({"gradient", side.get(args.logits, d.dtype, count), tolerance(d.dtype)});
    return outputs;
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, CrossEntropyParity,
    on_every_device<Loss>(
        {{"one", {.rows = 1, .classes = 1, .stride = 1}},
         {"plain_33x101", {.rows = 33, .classes = 101, .stride = 101}},
         {"wide_9x5003_padded", {.rows = 9, .classes = 5003, .stride = 5008}},
         {"beyond_shared_memory_2x60001", {.rows = 2, .classes = 60001, .stride = 60008}},
         {"many_rows_300x33_odd_stride", {.rows = 300, .classes = 33, .stride = 37}, 7},
         {"smoothed_3x1000", {.rows = 3, .classes = 1000, .stride = 1003, .smoothing = 0.2}},
         {"sharp_20x64", {.rows = 20, .classes = 64, .stride = 64}, 0, 30},
         {"smoothed_ignored_17x10", {.rows = 17, .classes = 10, .stride = 10, .smoothing = 0.1}, 3},
         {"nan_5x33", {.rows = 5, .classes = 33, .stride = 33}, 2, nan},
         {"masked_30x101", {.rows = 30, .classes = 101, .stride = 103}, 4, 1, 3},
         {"masked_smoothed_6x50", {.rows = 6, .classes = 50, .stride = 50, .smoothing = 0.1}, 0, 1, 7},
         {"all_masked_4x70", {.rows = 4, .classes = 70, .stride = 71}, 3, 1, 1},
         {"all_ignored_5x9", {.rows = 5, .classes = 9, .stride = 9}, 1},
         {"evaluation_40x300_ignored", {.rows = 40, .classes = 300, .stride = 320, .gradient = false}, 2}}),
    name_of_case<Loss>);

}  // namespace
}  // namespace assay::ops::parity
