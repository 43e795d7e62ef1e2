#include "workloads/nn/layers/losses.h"

#include <algorithm>

namespace assay::nn {

namespace {

// Each block adds to the weight's whole gradient, a pass over memory, so blocks are as large as possible without moving
// the peak of memory from the layers to here. For GPUs see step_options.cpp.
constexpr std::int64_t block_bytes = std::int64_t{128} << 20;
constexpr std::int64_t max_blocks = 256;  // keeps planning fast for batches that fit nowhere
// Some of the algorithms that cuBLASLt offers cannot index further (NVIDIA/raft#3097).
constexpr std::int64_t max_elements = (std::int64_t{1} << 31) - 1;

void append_cross_entropy(Builder& builder, Tensor logits, std::int64_t rows, std::int64_t classes, std::int64_t stride,
                          std::int64_t first_row, std::int64_t all_rows) {
  ops::CrossEntropyDesc desc{.rows = rows, .classes = classes, .stride = stride, .dtype = builder.compute()};
  desc.smoothing = builder.smoothing();
  desc.gradient = builder.training();
  const Tensor targets = builder.input(Input::targets, all_rows);
  const Tensor sums = builder.loss_sums(), scale = builder.gradient_scale();
  const Builder::Scope scope(builder, "loss");
  using Args = ops::CrossEntropy::Args;
  const std::size_t skip = static_cast<std::size_t>(first_row) * sizeof(std::int32_t);
  builder.run(builder.op<ops::CrossEntropy>(desc),
              {{&Args::logits, logits}, {&Args::targets, targets, skip}, {&Args::sums, sums}, {&Args::scale, scale}},
              {logits, sums});
}

// Columns of the product that gives the logits. The fastest GPU kernels need its sizes, not only its row offsets, to be
// multiples of 16 bytes (cuBLAS, "Tensor Core Usage"). So other vocabularies are padded, if the backend has products
// with strided rows, by classes whose weights are zero and which the loss ignores.
std::int64_t columns_of(Builder& builder, std::int64_t vocabulary) {
  constexpr std::int64_t whole = 64;
  ops::MatmulDesc product{.m = whole, .n = whole, .k = whole, .out = builder.compute(), .out_stride = 2 * whole};
  product.a = product.b = builder.product();
  const bool dense = vocabulary % 8 == 0 || !builder.has<ops::Matmul>(product);
  return dense ? vocabulary : (vocabulary + whole - 1) / whole * whole;
}

}  // namespace

std::int64_t rows_per_block(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t bytes) {
  const std::int64_t room = bytes > 0 ? bytes : block_bytes;
  const std::int64_t fit = room / (columns * static_cast<std::int64_t>(size_of(dtype)));
  const std::int64_t countable = std::max(max_elements / columns / 16 * 16, std::int64_t{1});
  const std::int64_t max_rows = std::min(countable, std::max({std::int64_t{1}, fit, rows / max_blocks}));
  if (rows <= max_rows) return rows;
  // Equal blocks, rounded up to a multiple of 16 rows.
  const std::int64_t blocks = (rows + max_rows - 1) / max_rows;
  const std::int64_t even = (rows + blocks - 1) / blocks;
  return std::min(rows, (even + 15) / 16 * 16);
}

Tensor LmHead::forward(Builder& builder, Tensor h) const {
  const Builder::Scope scope(builder, "head");
  const std::int64_t rows = builder.batch().samples * builder.batch().seq;
  const DType dtype = builder.compute();
  const Tensor dh = builder.training() ? builder.tensor("dh", rows * width_, dtype) : Tensor{};
  const Tensor bias = builder.bias(bias_);
  const std::int64_t columns = columns_of(builder, vocabulary_);
  const std::int64_t block = rows_per_block(rows, columns, dtype, builder.logits_bytes());
  builder.widen(weight_, columns * width_);
  builder.widen(bias_, columns);
  for (std::int64_t row = 0; row < rows; row += block) {
    const std::int64_t count = std::min(block, rows - row);
    const std::size_t skip = static_cast<std::size_t>(row * width_) * size_of(dtype);
    ops::MatmulDesc product{.m = count, .n = columns, .k = width_, .out = dtype, .transpose_b = true};
    product.a = product.b = builder.product();
    product.bias = static_cast<bool>(bias_);
    product.bias_type = builder.bias_type();
    const auto op = builder.weight_matmul(product);
    const Tensor logits = builder.rows("logits", count, vocabulary_, columns, dtype);
    const Tensor w = builder.operand(weight_, op);
    using Args = ops::MatmulArgs;
    builder.run(op, {{&Args::a, h, skip}, {&Args::b, w}, {&Args::bias, bias}}, {{&Args::out, logits}});
    append_cross_entropy(builder, logits, count, vocabulary_, columns, row, rows);
    if (!builder.training()) continue;
    builder.phase(Phase::backward);
    append_weight_gradient(builder, weight_, bias_, logits, h, count, width_, columns, row);
    ops::MatmulDesc back{.m = count, .n = width_, .k = columns, .out = dtype};
    back.a = back.b = builder.product();
    const auto back_op = builder.weight_matmul(back);
    const Tensor back_w = builder.operand(weight_, back_op);
    builder.run(back_op, {{&Args::a, logits}, {&Args::b, back_w}}, {{&Args::out, dh, skip}});
    builder.phase(Phase::forward);
  }
  return dh;
}

Tensor Classifier::forward(Builder& builder, Tensor x) {
  const std::int64_t rows = builder.batch().samples;
  const Tensor logits = linear_.forward(builder, x, rows);
  append_cross_entropy(builder, logits, rows, classes_, classes_, 0, rows);
  if (!builder.training()) return {};
  builder.phase(Phase::backward);
  return linear_.backward(builder, logits);
}

}  // namespace assay::nn
