// The oracle's matrix product: naive loops, sums in double (64-bit integers for int8).
#include "workloads/ops/functors/activation.h"
#include "workloads/ops/reference/reference.h"
#include "workloads/ops/reference/reference_op.h"

#include <algorithm>

namespace assay::ops::reference {

namespace {

template <typename T>
auto wide(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(value);
  else
    return widen(value);
}

template <typename A, typename B, typename Out>
class ReferenceMatmul final : public ReferenceOp<Matmul> {
 public:
  explicit ReferenceMatmul(const MatmulDesc& desc) : d_(desc) {}

  std::size_t packed_bytes() const override {
    return d_.form == WeightForm::plain ? 0 : static_cast<std::size_t>(d_.k * d_.n) * sizeof(B);
  }

  void pack(Stream&, const void* b, void* packed) override {
    if constexpr (std::is_integral_v<B>) {
      std::copy_n(static_cast<const B*>(b), d_.k * d_.n, static_cast<B*>(packed));
    } else {
      const Array from(b, d_.pack_from);
      for (std::int64_t i = 0; i < d_.k * d_.n; ++i) static_cast<B*>(packed)[i] = narrow<B>(from[i]);
    }
  }

  void run(Stream&, const MatmulArgs& args) override {
    const auto* a = static_cast<const A*>(args.a);
    const auto* b = static_cast<const B*>(args.b);
    auto* out = static_cast<Out*>(args.out);
    for (std::int64_t i = 0; i < d_.m; ++i)
      for (std::int64_t j = 0; j < d_.n; ++j) {
        decltype(wide(A{}) * wide(B{})) sum = 0;
        for (std::int64_t k = 0; k < d_.k; ++k)
          sum += wide(a[d_.transpose_a ? k * d_.m + i : i * d_.k + k]) *
                 wide(b[d_.transpose_b ? j * d_.k + k : k * d_.n + j]);
        if constexpr (std::is_integral_v<Out>)
          out[i * d_.n + j] = static_cast<Out>(sum);
        else
          store(sum, i, j, args);
      }
    if constexpr (!std::is_integral_v<A>)
      if (d_.row_sums) add_rows(a, static_cast<Statistic<A>*>(args.row_sums));
  }

 private:
  void store(double sum, std::int64_t i, std::int64_t j, const MatmulArgs& args) const {
    auto* out = static_cast<Out*>(args.out) + i * d_.n + j;
    auto* aux = static_cast<Out*>(args.aux) + i * d_.n + j;
    if (d_.bias) sum += Array(args.bias, d_.bias_type)[j];
    switch (d_.epilogue) {
      case Epilogue::none: return put(*out, sum, d_.accumulate);
      case Epilogue::gelu_tanh:
        *aux = narrow<Out>(sum);
        *out = narrow<Out>(functors::GeluTanh()(sum));
        return;
      case Epilogue::gelu_erf:
        *aux = narrow<Out>(sum);
        *out = narrow<Out>(functors::GeluErf()(sum));
        return;
      case Epilogue::gelu_tanh_gradient: *out = narrow<Out>(sum * functors::GeluTanhGradient()(widen(*aux))); return;
      case Epilogue::gelu_erf_gradient: *out = narrow<Out>(sum * functors::GeluErfGradient()(widen(*aux))); return;
    }
  }

  void add_rows(const A* a, Statistic<A>* sums) const {
    for (std::int64_t i = 0; i < d_.m; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < d_.k; ++k) sum += wide(a[d_.transpose_a ? k * d_.m + i : i * d_.k + k]);
      put(sums[i], sum, d_.accumulate);
    }
  }

  MatmulDesc d_;
};

template <typename A, typename B, typename Out>
Made<Matmul> op(const MatmulDesc& d) {
  return std::unique_ptr<Matmul>(std::make_unique<ReferenceMatmul<A, B, Out>>(d));
}

}  // namespace

Made<Matmul> make_matmul(const MatmulDesc& d) {
  if (auto problem = problem_of(d)) return Made<Matmul>::no(*problem);
  if (d.a == DType::f64) return op<double, double, double>(d);
  if (d.a == DType::f32) return op<float, float, float>(d);
  if (d.a == DType::u8) return op<std::uint8_t, std::int8_t, std::int32_t>(d);
  if (d.out == DType::f32) return op<bf16, bf16, float>(d);
  return op<bf16, bf16, bf16>(d);
}

}  // namespace assay::ops::reference
