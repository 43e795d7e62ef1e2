#include "workloads/ops/cuda/attention_ways.h"

#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/attention_kernels.h"
#include "workloads/ops/cuda/blaslt.h"
#include "workloads/ops/descriptors.h"
#include "workloads/ops/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace assay::ops {

namespace {

constexpr std::int64_t target_bytes = std::int64_t{32} << 20;  // of scores and other arrays of their shape
constexpr std::int64_t enough_queries = 256;                   // queries for an efficient product

// Processes a sequence's heads `kv_heads` key heads at a time, and their queries in blocks of `queries`.
struct Shape {
  Shape(const AttentionDesc& desc, std::int64_t bytes_per_score) : d(desc) {
    row_stride = round_up(d.seq, 8);
    kv_heads = d.kv_heads;
    // Blocks of few rows make thin products: use fewer heads instead.
    while (kv_heads > 1 && rows_that_fit(bytes_per_score) < std::min(d.seq, enough_queries)) do
        --kv_heads;
      while (d.kv_heads % kv_heads != 0);
    // Causal blocks skip masked keys beyond their last query, so keep these blocks small.
    const std::int64_t max_queries =
        std::clamp<std::int64_t>(rows_that_fit(bytes_per_score), 64, d.causal ? enough_queries : d.seq + 64);
    blocks = (d.seq + max_queries - 1) / max_queries;
    queries = std::min(d.seq, round_up((d.seq + blocks - 1) / blocks, 16));
    blocks = (d.seq + queries - 1) / queries;
  }

  std::int64_t group() const { return d.heads / d.kv_heads; }
  std::int64_t heads() const { return kv_heads * group(); }
  std::int64_t scores() const { return heads() * queries * row_stride; }  // elements of one block
  std::int64_t queries_of(std::int64_t block) const { return std::min(queries, d.seq - block * queries); }
  std::int64_t keys_of(std::int64_t block) const { return d.causal ? block * queries + queries_of(block) : d.seq; }
  double scale() const { return d.scale != 0 ? d.scale : 1 / std::sqrt(static_cast<double>(d.head_dim)); }
  std::size_t bytes() const { return size_of(d.dtype); }
  std::int64_t out_stride() const { return d.heads * d.head_dim; }

  AttentionDesc d;
  std::int64_t kv_heads = 0;
  std::int64_t row_stride = 0;
  std::int64_t queries = 0;
  std::int64_t blocks = 0;

 private:
  std::int64_t rows_that_fit(std::int64_t bytes_per_score) const {
    return target_bytes / (bytes_per_score * heads() * row_stride);
  }
};

DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::fp16; }
// The storage type: tf32 only affects how f32 is multiplied.

// The alignment in bytes of elements in a tensor with heads `head_dim` and tokens `stride` elements apart.
std::int64_t alignment_of(const Shape& s, std::int64_t stride) {
  const auto unit = std::gcd(s.d.head_dim, stride) * static_cast<std::int64_t>(s.bytes());
  return std::min<std::int64_t>(unit & -unit, 256);
}

// One matrix operand of a product: rows `stride` elements apart, matrices of a batch `batch` apart.
struct Operand {
  std::int64_t stride = 0;
  std::int64_t batch = 0;
  std::int64_t alignment = 0;
};

Operand heads_of_queries(const Shape& s, std::int64_t stride) {
  return {stride, s.group() * s.d.head_dim, alignment_of(s, stride)};
}
Operand heads_of_keys(const Shape& s, std::int64_t stride) { return {stride, s.d.head_dim, alignment_of(s, stride)}; }
Operand scores_of(const Shape& s, std::int64_t queries) {
  return {s.row_stride, s.group() * queries * s.row_stride, 16};
}

// Makes plans for out (m, n) = op(a) op(b), for each key head of a block; keeps the first reason for failure.
class PlanMaker {
 public:
  explicit PlanMaker(const Shape& shape) : s_(shape) {}

  struct Form {
    bool transpose_a = false;
    bool transpose_b = false;
    DType out = DType::f32;
    bool accumulate = false;
  };
  std::shared_ptr<BlasPlan> make(std::int64_t m, std::int64_t n, std::int64_t k, const Operand& a, const Operand& b,
                                 const Operand& out, const Form& form) {
    if (!reason_.empty()) return nullptr;
    BlasProduct product;
    product.m = m;
    product.n = n;
    product.k = k;
    product.a = product.b = s_.d.dtype;
    product.out = form.out;
    product.transpose_a = form.transpose_a;
    product.transpose_b = form.transpose_b;
    product.a_stride = a.stride;
    product.b_stride = b.stride;
    product.out_stride = out.stride;
    product.batch = s_.kv_heads;
    product.a_batch = a.batch;
    product.b_batch = b.batch;
    product.out_batch = out.batch;
    product.a_alignment = a.alignment;
    product.b_alignment = b.alignment;
    product.out_alignment = out.alignment;
    product.beta = form.accumulate ? 1.0f : 0.0f;
    Made<BlasPlan> made = make_blas_plan(product);
    if (!made) {
      reason_ = made.reason();
      return nullptr;
    }
    std::shared_ptr<BlasPlan> plan = made.take();
    workspace_ = std::max(workspace_, plan->workspace_bytes());
    return plan;
  }
  const std::string& reason() const { return reason_; }
  std::size_t workspace_bytes() const { return workspace_; }

 private:
  Shape s_;
  std::string reason_;
  std::size_t workspace_ = 0;
};

// Consecutive parts of the workspace.
class Parts {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t at = end_;
    end_ += aligned_size(bytes);
    return at;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

template <typename Base>
class Composite : public Base {
 public:
  Composite(const Shape& shape, std::string architecture, const std::string& why)
      : s_(shape),
        architecture_(std::move(architecture)),
        implementation_(why.empty() ? "products and softmax:cublaslt"
                                    : fmt::format("products and softmax:cublaslt ({})", why)) {}
  std::string implementation() const override { return implementation_; }
  std::string isa() const override { return architecture_; }
  std::size_t workspace_bytes() const override { return parts_.bytes(); }

 protected:
  // Calls f(b, first key head) for every sequence and part of its heads.
  template <typename F>
  void for_heads(F f) const {
    for (std::int64_t b = 0; b < s_.d.batch; ++b)
      for (std::int64_t kv = 0; kv < s_.d.kv_heads; kv += s_.kv_heads) f(b, kv);
  }
  AttentionRows rows(std::int64_t b, std::int64_t kv, std::int64_t block, const std::int32_t* lengths) const {
    AttentionRows rows;
    rows.sequence = b;
    rows.total_heads = s_.d.heads;
    rows.first_head = kv * s_.group();
    rows.heads = s_.heads();
    rows.first_query = block * s_.queries;
    rows.queries = s_.queries_of(block);
    rows.keys = s_.keys_of(block);
    rows.row_stride = s_.row_stride;
    rows.seq = s_.d.seq;
    rows.head_dim = s_.d.head_dim;
    rows.scale = s_.scale();
    rows.lengths = s_.d.lengths ? lengths : nullptr;
    rows.causal = s_.d.causal;
    return rows;
  }
  // The address of a token's head in an array of the op's type, const like `base`.
  template <typename Pointer>
  Pointer place(Pointer base, std::int64_t stride, std::int64_t b, std::int64_t token, std::int64_t head) const {
    return element(base, (b * s_.d.seq + token) * stride + head * s_.d.head_dim, s_.d.dtype);
  }
  template <typename Pointer>
  static Pointer element(Pointer base, std::int64_t index, DType dtype) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
    return static_cast<Byte*>(base) + index * static_cast<std::int64_t>(size_of(dtype));
  }
  // The rows of one query head of the group in a block of scores.
  void* scores_at(void* base, std::int64_t g, std::int64_t queries, DType dtype) const {
    return element(base, g * queries * s_.row_stride, dtype);
  }
  static void* part(void* workspace, std::size_t offset) { return static_cast<char*>(workspace) + offset; }

  Shape s_;
  Parts parts_;

 private:
  std::string architecture_;
  std::string implementation_;
};

class Forward final : public Composite<AttentionForward> {
 public:
  // `shape` must be from a valid descriptor. Sets `why_not` if a product is unavailable.
  Forward(const Shape& shape, const std::string& architecture, const std::string& why, std::string& why_not)
      : Composite(shape, architecture, why) {
    const AttentionDesc& d = s_.d;
    PlanMaker maker(s_);
    for (std::int64_t block = 0; block < s_.blocks; ++block) {
      const std::int64_t queries = s_.queries_of(block), keys = s_.keys_of(block);
      if (!products_.empty() && products_.back().queries == queries && products_.back().keys == keys) {
        products_.push_back(products_.back());
        continue;
      }
      Products p{queries, keys, nullptr, nullptr};
      p.scores = maker.make(queries, keys, d.head_dim, heads_of_queries(s_, d.q_stride), heads_of_keys(s_, d.k_stride),
                            scores_of(s_, queries), {.transpose_b = true, .out = wide(d.dtype)});
      p.out = maker.make(queries, d.head_dim, keys, scores_of(s_, queries), heads_of_keys(s_, d.v_stride),
                         heads_of_queries(s_, s_.out_stride()), {.out = storage_type(d.dtype)});
      products_.push_back(std::move(p));
    }
    why_not = maker.reason();
    const auto count = static_cast<std::size_t>(s_.scores());
    scores_ = parts_.add(count * size_of(wide(d.dtype)));
    probabilities_ = is_narrow(d.dtype) ? parts_.add(count * s_.bytes()) : scores_;
    products_workspace_ = parts_.add(maker.workspace_bytes());
  }

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t queue = cuda::native(stream);
    void* const scores = part(args.workspace, scores_);
    void* const probabilities = part(args.workspace, probabilities_);
    void* const space = part(args.workspace, products_workspace_);
    const AttentionDesc& d = s_.d;
    for_heads([&](std::int64_t b, std::int64_t kv) {
      for (std::int64_t block = 0; block < s_.blocks; ++block) {
        const Products& p = products_[static_cast<std::size_t>(block)];
        const std::int64_t token = block * s_.queries, head = kv * s_.group();
        for (std::int64_t g = 0; g < s_.group(); ++g)
          p.scores->run(queue, {.a = place(args.q, d.q_stride, b, token, head + g),
                                .b = place(args.k, d.k_stride, b, 0, kv),
                                .out = scores_at(scores, g, p.queries, wide(d.dtype)),
                                .workspace = space});
        attention_softmax(d.dtype, rows(b, kv, block, args.lengths), scores, probabilities, args.log_sum_exp, queue);
        for (std::int64_t g = 0; g < s_.group(); ++g)
          p.out->run(queue, {.a = scores_at(probabilities, g, p.queries, d.dtype),
                             .b = place(args.v, d.v_stride, b, 0, kv),
                             .out = place(args.out, s_.out_stride(), b, token, head + g),
                             .workspace = space});
      }
    });
  }

 private:
  struct Products {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::shared_ptr<BlasPlan> scores, out;
  };

  std::vector<Products> products_;  // by block of queries
  std::size_t scores_ = 0;
  std::size_t probabilities_ = 0;
  std::size_t products_workspace_ = 0;
};

// Processes blocks of queries from the last to the first. The last one sees every key, so it writes all of dk and dv;
// the other blocks, and other query heads of the group, add to them in a fixed order: in f32, for narrow types in the
// workspace.
class Backward final : public Composite<AttentionBackward> {
 public:
  Backward(const Shape& shape, const std::string& architecture, const std::string& why, std::string& why_not)
      : Composite(shape, architecture, why), sums_(is_narrow(s_.d.dtype) && (s_.blocks > 1 || s_.group() > 1)) {
    const AttentionDesc& d = s_.d;
    PlanMaker maker(s_);
    for (std::int64_t block = 0; block < s_.blocks; ++block) {
      const bool last = block == s_.blocks - 1;
      const std::int64_t queries = s_.queries_of(block), keys = s_.keys_of(block);
      if (!products_.empty() && !last && products_.back().queries == queries && products_.back().keys == keys) {
        products_.push_back(products_.back());
        continue;
      }
      const Operand q = heads_of_queries(s_, d.q_stride), k = heads_of_keys(s_, d.k_stride),
                    v = heads_of_keys(s_, d.v_stride), dout = heads_of_queries(s_, s_.out_stride()),
                    scores = scores_of(s_, queries);
      const Operand sums{d.head_dim, d.seq * d.head_dim, alignment_of_sums()};
      const DType total = sums_ ? DType::f32 : storage_type(d.dtype);
      const auto add_to_keys = [&](const Operand& b, const Operand& place, bool accumulate) {
        return maker.make(keys, d.head_dim, queries, scores, b, sums_ ? sums : place,
                          {.transpose_a = true, .out = total, .accumulate = accumulate});
      };
      Products p;
      p.queries = queries;
      p.keys = keys;
      p.scores = maker.make(queries, keys, d.head_dim, q, k, scores, {.transpose_b = true, .out = wide(d.dtype)});
      p.dprobabilities =
          maker.make(queries, keys, d.head_dim, dout, v, scores, {.transpose_b = true, .out = wide(d.dtype)});
      p.dq = maker.make(queries, d.head_dim, keys, scores, k, q, {.out = storage_type(d.dtype)});
      if (last) {
        p.write_dv = add_to_keys(dout, v, false);
        p.write_dk = add_to_keys(q, k, false);
      }
      if (!last || s_.group() > 1) {
        p.add_dv = add_to_keys(dout, v, true);
        p.add_dk = add_to_keys(q, k, true);
      }
      products_.push_back(std::move(p));
    }
    why_not = maker.reason();
    const auto count = static_cast<std::size_t>(s_.scores());
    const bool separate = is_narrow(d.dtype);
    scores_ = parts_.add(count * size_of(wide(d.dtype)));
    dprobabilities_ = parts_.add(count * size_of(wide(d.dtype)));
    probabilities_ = separate ? parts_.add(count * s_.bytes()) : scores_;
    dscores_ = separate ? parts_.add(count * s_.bytes()) : dprobabilities_;
    const auto of_keys = static_cast<std::size_t>(sums_ ? s_.kv_heads * d.seq * d.head_dim : 0) * sizeof(float);
    dk_sums_ = parts_.add(of_keys);
    dv_sums_ = parts_.add(of_keys);
    products_workspace_ = parts_.add(maker.workspace_bytes());
  }

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t queue = cuda::native(stream);
    const AttentionDesc& d = s_.d;
    for_heads([&](std::int64_t b, std::int64_t kv) {
      void* const dk = sums_ ? part(args.workspace, dk_sums_) : place(args.dk, d.k_stride, b, 0, kv);
      void* const dv = sums_ ? part(args.workspace, dv_sums_) : place(args.dv, d.v_stride, b, 0, kv);
      for (std::int64_t block = s_.blocks - 1; block >= 0; --block) run_block(queue, args, b, kv, block, dk, dv);
      if (!sums_) return;
      attention_store_sums(d.dtype, static_cast<const float*>(dk), s_.kv_heads, d.seq, d.head_dim,
                           place(args.dk, d.k_stride, b, 0, kv), d.k_stride, queue);
      attention_store_sums(d.dtype, static_cast<const float*>(dv), s_.kv_heads, d.seq, d.head_dim,
                           place(args.dv, d.v_stride, b, 0, kv), d.v_stride, queue);
    });
  }

 private:
  struct Products {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::shared_ptr<BlasPlan> scores, dprobabilities, dq, write_dk, write_dv, add_dk, add_dv;
  };

  std::int64_t alignment_of_sums() const {
    const auto unit = s_.d.head_dim * static_cast<std::int64_t>(sizeof(float));
    return std::min<std::int64_t>(unit & -unit, 256);
  }

  void run_block(cudaStream_t queue, const Args& args, std::int64_t b, std::int64_t kv, std::int64_t block, void* dk,
                 void* dv) {
    const AttentionDesc& d = s_.d;
    const Products& p = products_[static_cast<std::size_t>(block)];
    const std::int64_t token = block * s_.queries, head = kv * s_.group();
    const bool last = block == s_.blocks - 1;
    void* const scores = part(args.workspace, scores_);
    void* const dprobabilities = part(args.workspace, dprobabilities_);
    void* const probabilities = part(args.workspace, probabilities_);
    void* const dscores = part(args.workspace, dscores_);
    void* const space = part(args.workspace, products_workspace_);
    for (std::int64_t g = 0; g < s_.group(); ++g) {
      p.scores->run(queue, {.a = place(args.q, d.q_stride, b, token, head + g),
                            .b = place(args.k, d.k_stride, b, 0, kv),
                            .out = scores_at(scores, g, p.queries, wide(d.dtype)),
                            .workspace = space});
      p.dprobabilities->run(queue, {.a = place(args.dout, s_.out_stride(), b, token, head + g),
                                    .b = place(args.v, d.v_stride, b, 0, kv),
                                    .out = scores_at(dprobabilities, g, p.queries, wide(d.dtype)),
                                    .workspace = space});
    }
    attention_softmax_gradient(d.dtype, rows(b, kv, block, args.lengths),
                               {.scores = scores,
                                .dprobabilities = dprobabilities,
                                .out = args.out,
                                .dout = args.dout,
                                .log_sum_exp = args.log_sum_exp,
                                .probabilities = probabilities,
                                .dscores = dscores},
                               queue);
    for (std::int64_t g = 0; g < s_.group(); ++g) {
      const bool first = last && g == 0;
      (first ? p.write_dv : p.add_dv)
          ->run(queue, {.a = scores_at(probabilities, g, p.queries, d.dtype),
                        .b = place(args.dout, s_.out_stride(), b, token, head + g),
                        .out = dv,
                        .workspace = space});
      (first ? p.write_dk : p.add_dk)
          ->run(queue, {.a = scores_at(dscores, g, p.queries, d.dtype),
                        .b = place(args.q, d.q_stride, b, token, head + g),
                        .out = dk,
                        .workspace = space});
      p.dq->run(queue, {.a = scores_at(dscores, g, p.queries, d.dtype),
                        .b = place(args.k, d.k_stride, b, 0, kv),
                        .out = place(args.dq, d.q_stride, b, token, head + g),
                        .workspace = space});
    }
  }

  bool sums_;                       // dk and dv are summed in the workspace
  std::vector<Products> products_;  // by block of queries
  std::size_t scores_ = 0;
  std::size_t dprobabilities_ = 0;
  std::size_t probabilities_ = 0;
  std::size_t dscores_ = 0;
  std::size_t dk_sums_ = 0;
  std::size_t dv_sums_ = 0;
  std::size_t products_workspace_ = 0;
};

template <typename Base, typename Op>
Made<Base> make(const AttentionDesc& desc, int wide_arrays, int narrow_arrays, const std::string& architecture,
                const std::string& why) {
  const auto wide_bytes = static_cast<std::int64_t>(size_of(wide(desc.dtype)));
  const auto narrow_bytes = is_narrow(desc.dtype) ? static_cast<std::int64_t>(size_of(desc.dtype)) : 0;
  std::string why_not;
  auto op = std::make_unique<Op>(Shape(desc, wide_arrays * wide_bytes + narrow_arrays * narrow_bytes), architecture,
                                 why, why_not);
  if (!why_not.empty()) return Made<Base>::no(why_not);
  return Made<Base>(std::move(op));
}

}  // namespace

Made<AttentionForward> make_composite_attention_forward(const AttentionDesc& desc, const std::string& architecture,
                                                        const std::string& why) {
  return make<AttentionForward, Forward>(desc, 1, 1, architecture, why);
}

Made<AttentionBackward> make_composite_attention_backward(const AttentionDesc& desc, const std::string& architecture,
                                                          const std::string& why) {
  return make<AttentionBackward, Backward>(desc, 2, 2, architecture, why);
}

}  // namespace assay::ops
