// The oracle's matrix product: naive loops, sums in double (64-bit integers for int8).
#include "harness/core/error.h"
#include "workloads/ops/backend.h"

#include <type_traits>

namespace assay::ops {

namespace {

template <typename T>
auto widened(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(value);
  else
    return static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, bf16>, float, T>>(value));
}

template <typename Out, typename Sum>
Out narrowed(Sum sum) {
  if constexpr (std::is_same_v<Out, bf16>)
    return bf16(static_cast<float>(sum));
  else
    return static_cast<Out>(sum);
}

template <typename A, typename B, typename Out>
class ReferenceMatmul final : public Matmul {
 public:
  explicit ReferenceMatmul(const MatmulDesc& desc) : d_(desc) {}
  std::string implementation() const override { return "reference"; }
  std::string isa() const override { return "scalar"; }

  void run(Stream&, const MatmulArgs& args) override {
    const auto* a = static_cast<const A*>(args.a);
    const auto* b = static_cast<const B*>(args.b);
    auto* out = static_cast<Out*>(args.out);
    for (std::int64_t i = 0; i < d_.m; ++i)
      for (std::int64_t j = 0; j < d_.n; ++j) {
        decltype(widened(A{}) * widened(B{})) sum = 0;
        for (std::int64_t k = 0; k < d_.k; ++k)
          sum += widened(a[d_.transpose_a ? k * d_.m + i : i * d_.k + k]) *
                 widened(b[d_.transpose_b ? j * d_.k + k : k * d_.n + j]);
        out[i * d_.n + j] = narrowed<Out>(sum);
      }
  }

 private:
  MatmulDesc d_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string libraries() const override { return "none"; }

  Made<Matmul> make(const MatmulDesc& d) override {
    if (auto problem = problem_of(d)) return Made<Matmul>::no(*problem);
    if (d.form != WeightForm::plain) return Made<Matmul>::no("the reference takes weights as they lie");
    if (d.a == DType::f64) return op<double, double, double>(d);
    if (d.a == DType::f32) return op<float, float, float>(d);
    if (d.a == DType::u8) return op<std::uint8_t, std::int8_t, std::int32_t>(d);
    if (d.out == DType::f32) return op<bf16, bf16, float>(d);
    return op<bf16, bf16, bf16>(d);
  }

 private:
  template <typename A, typename B, typename Out>
  static Made<Matmul> op(const MatmulDesc& d) {
    return std::unique_ptr<Matmul>(std::make_unique<ReferenceMatmul<A, B, Out>>(d));
  }
};

}  // namespace

std::shared_ptr<Backend> make_reference_backend() { return std::make_shared<ReferenceBackend>(); }

}  // namespace assay::ops
