// The oracle's attention, one row of scores at a time. Backward recomputes probabilities from the saved log-sum-exp,
// as in FlashAttention (Dao et al. 2022).
#include "tests/oracle/reference_op.h"
#include "workloads/ops/descriptors.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::ops::reference {

namespace {

// Addresses of elements, the keys each query sees, and dot products.
template <typename T>
struct Problem {
  explicit Problem(const AttentionDesc& desc) : d(desc) {}

  const T* q(const void* base, std::int64_t b, std::int64_t t, std::int64_t h) const {
    return static_cast<const T*>(base) + (b * d.seq + t) * d.q_stride + h * d.head_dim;
  }
  const T* k(const void* base, std::int64_t b, std::int64_t t, std::int64_t kv) const {
    return static_cast<const T*>(base) + (b * d.seq + t) * d.k_stride + kv * d.head_dim;
  }
  const T* v(const void* base, std::int64_t b, std::int64_t t, std::int64_t kv) const {
    return static_cast<const T*>(base) + (b * d.seq + t) * d.v_stride + kv * d.head_dim;
  }
  const T* out(const void* base, std::int64_t b, std::int64_t t, std::int64_t h) const {
    return static_cast<const T*>(base) + ((b * d.seq + t) * d.heads + h) * d.head_dim;
  }
  std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t t) const { return (b * d.heads + h) * d.seq + t; }

  std::int64_t length(const std::int32_t* lengths, std::int64_t b) const { return d.lengths ? lengths[b] : d.seq; }
  // Query t sees keys [0, keys).
  std::int64_t keys(std::int64_t length, std::int64_t t) const {
    if (t >= length) return 0;
    return d.causal ? t + 1 : length;
  }
  double dot(const T* x, const T* y) const {
    double sum = 0;
    for (std::int64_t i = 0; i < d.head_dim; ++i) sum += widen(x[i]) * widen(y[i]);
    return sum;
  }

  AttentionDesc d;
  double scale = d.scale != 0 ? d.scale : 1 / std::sqrt(static_cast<double>(d.head_dim));
  std::int64_t group = d.heads / d.kv_heads;  // query heads that share a key and value head
};

template <typename T>
class ReferenceAttentionForward final : public ReferenceOp<AttentionForward> {
 public:
  using ReferenceOp::ReferenceOp;

  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(p_.d.seq) * sizeof(double); }

  void run(Stream&, const Args& args) override {
    for (std::int64_t b = 0; b < p_.d.batch; ++b)
      for (std::int64_t h = 0; h < p_.d.heads; ++h)
        for (std::int64_t t = 0; t < p_.d.seq; ++t) query(b, h, t, args);
  }

 private:
  using S = Statistic<T>;

  void query(std::int64_t b, std::int64_t h, std::int64_t t, const Args& args) const {
    const std::int64_t keys = p_.keys(p_.length(args.lengths, b), t), kv = h / p_.group;
    auto* scores = static_cast<double*>(args.workspace);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      scores[j] = p_.dot(p_.q(args.q, b, t, h), p_.k(args.k, b, j, kv)) * p_.scale;
      largest = std::max(largest, scores[j]);
    }
    for (std::int64_t j = 0; j < keys; ++j) sum += scores[j] = std::exp(scores[j] - largest);
    T* out = const_cast<T*>(p_.out(args.out, b, t, h));
    for (std::int64_t i = 0; i < p_.d.head_dim; ++i) {
      double value = 0;
      for (std::int64_t j = 0; j < keys; ++j) value += scores[j] / sum * widen(p_.v(args.v, b, j, kv)[i]);
      out[i] = narrow<T>(value);
    }
    static_cast<S*>(args.log_sum_exp)[p_.row(b, h, t)] = narrow<S>(keys > 0 ? largest + std::log(sum) : 0);
  }

  Problem<T> p_{d_};
};

template <typename T>
class ReferenceAttentionBackward final : public ReferenceOp<AttentionBackward> {
 public:
  using ReferenceOp::ReferenceOp;

  // dk and dv of one head, dq of one query.
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>((2 * p_.d.seq + 1) * p_.d.head_dim) * sizeof(double);
  }

  void run(Stream&, const Args& args) override {
    const std::int64_t seq = p_.d.seq, dim = p_.d.head_dim;
    auto* dk = static_cast<double*>(args.workspace);
    auto* dv = dk + seq * dim;
    for (std::int64_t b = 0; b < p_.d.batch; ++b)
      for (std::int64_t kv = 0; kv < p_.d.kv_heads; ++kv) {
        std::fill_n(dk, 2 * seq * dim, 0.0);
        for (std::int64_t h = kv * p_.group; h < (kv + 1) * p_.group; ++h)
          for (std::int64_t t = 0; t < seq; ++t) query(b, h, t, dk, dv, args);
        for (std::int64_t t = 0; t < seq; ++t)
          for (std::int64_t i = 0; i < dim; ++i) {
            const_cast<T*>(p_.k(args.dk, b, t, kv))[i] = narrow<T>(dk[t * dim + i]);
            const_cast<T*>(p_.v(args.dv, b, t, kv))[i] = narrow<T>(dv[t * dim + i]);
          }
      }
  }

 private:
  void query(std::int64_t b, std::int64_t h, std::int64_t t, double* dk, double* dv, const Args& args) const {
    const std::int64_t keys = p_.keys(p_.length(args.lengths, b), t), kv = h / p_.group, dim = p_.d.head_dim;
    const T* q = p_.q(args.q, b, t, h);
    const T* dout = p_.out(args.dout, b, t, h);
    const double log_sum_exp = widen(static_cast<const Statistic<T>*>(args.log_sum_exp)[p_.row(b, h, t)]);
    const double delta = p_.dot(dout, p_.out(args.out, b, t, h));
    double* dq = dv + p_.d.seq * dim;
    std::fill_n(dq, dim, 0.0);
    for (std::int64_t j = 0; j < keys; ++j) {
      const T* k = p_.k(args.k, b, j, kv);
      const double probability = std::exp(p_.dot(q, k) * p_.scale - log_sum_exp);
      const double dscore = probability * (p_.dot(dout, p_.v(args.v, b, j, kv)) - delta) * p_.scale;
      for (std::int64_t i = 0; i < dim; ++i) {
        dq[i] += dscore * widen(k[i]);
        dk[j * dim + i] += dscore * widen(q[i]);
        dv[j * dim + i] += probability * widen(dout[i]);
      }
    }
    for (std::int64_t i = 0; i < dim; ++i) const_cast<T*>(p_.q(args.dq, b, t, h))[i] = narrow<T>(dq[i]);
  }

  Problem<T> p_{d_};
};

}  // namespace

template <>
Made<AttentionForward> make_reference(const AttentionDesc& d) {
  return by_type<AttentionForward, ReferenceAttentionForward>(storage_type(d.dtype), d);
}

template <>
Made<AttentionBackward> make_reference(const AttentionDesc& d) {
  return by_type<AttentionBackward, ReferenceAttentionBackward>(storage_type(d.dtype), d);
}

}  // namespace assay::ops::reference
