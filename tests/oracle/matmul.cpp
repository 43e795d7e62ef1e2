// The oracle's matrix product: naive loops, sums in double (64-bit integers for int8).
#include "tests/oracle/reference_op.h"
#include "workloads/ops/functors/activation.h"

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

template <typename A, typename B>
class ReferenceMatmul final : public ReferenceOp<Matmul> {
 public:
  using ReferenceOp::ReferenceOp;

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
    for (std::int64_t i = 0; i < d_.m; ++i)
      for (std::int64_t j = 0; j < d_.n; ++j) {
        decltype(wide(A{}) * wide(B{})) sum = 0;
        for (std::int64_t k = 0; k < d_.k; ++k)
          sum += wide(a[d_.transpose_a ? k * d_.a_row() + i : i * d_.a_row() + k]) *
                 wide(b[d_.transpose_b ? j * d_.b_row() + k : k * d_.b_row() + j]);
        if constexpr (std::is_integral_v<A>)
          static_cast<std::int32_t*>(args.out)[i * d_.out_row() + j] = static_cast<std::int32_t>(sum);
        else
          store(sum * (args.scale_a ? widen(*args.scale_a) : 1) * (args.scale_b ? widen(*args.scale_b) : 1), i, j,
                args);
      }
    if constexpr (!std::is_integral_v<A>)
      if (d_.row_sums) add_rows(a, static_cast<Statistic<A>*>(args.row_sums));
  }

 private:
  void store(double sum, std::int64_t i, std::int64_t j, const MatmulArgs& args) const {
    const Array out(args.out, d_.out), aux(args.aux, d_.out);
    const std::int64_t at = i * d_.out_row() + j;
    if (d_.bias) sum += Array(args.bias, d_.bias_type)[j];
    switch (d_.epilogue) {
      case Epilogue::none: return out.put(at, sum, d_.accumulate);
      case Epilogue::gelu_tanh: aux.set(at, sum); return out.set(at, functors::GeluTanh()(sum));
      case Epilogue::gelu_erf: aux.set(at, sum); return out.set(at, functors::GeluErf()(sum));
      case Epilogue::gelu_tanh_gradient: return out.set(at, sum * functors::GeluTanhGradient()(aux[at]));
      case Epilogue::gelu_erf_gradient: return out.set(at, sum * functors::GeluErfGradient()(aux[at]));
    }
  }

  void add_rows(const A* a, Statistic<A>* sums) const {
    for (std::int64_t i = 0; i < d_.m; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < d_.k; ++k) sum += wide(a[d_.transpose_a ? k * d_.a_row() + i : i * d_.a_row() + k]);
      put(sums[i], sum, d_.accumulate);
    }
  }
};

template <typename A, typename B = A>
Made<Matmul> op(const MatmulDesc& d) {
  return std::unique_ptr<Matmul>(std::make_unique<ReferenceMatmul<A, B>>(d));
}

}  // namespace

template <>
Made<Matmul> make_reference(const MatmulDesc& d) {
  switch (d.a) {
    case DType::f64: return op<double>(d);
    case DType::bf16: return op<bf16>(d);
    case DType::fp16: return op<fp16>(d);
    case DType::fp8_e5m2: return op<fp8_e5m2, fp8_e4m3>(d);
    case DType::fp8_e4m3: return d.b == DType::fp8_e4m3 ? op<fp8_e4m3>(d) : op<fp8_e4m3, fp8_e5m2>(d);
    case DType::u8: return op<std::uint8_t, std::int8_t>(d);
    case DType::s8: return op<std::int8_t>(d);
    default: return op<float>(d);
  }
}

}  // namespace assay::ops::reference
