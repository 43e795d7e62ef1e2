// The oracle's rotary position embedding (Su et al. 2021), halves paired as in Llama.
#include "workloads/ops/functors/rotary.h"
#include "tests/oracle/reference_op.h"

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceRotary final : public ReferenceOp<Rotary> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const auto* cosine = static_cast<const Statistic<T>*>(args.cosine);
    const auto* sine = static_cast<const Statistic<T>*>(args.sine);
    const std::int64_t half = d_.head_dim / 2;
    for (std::int64_t b = 0; b < d_.batch; ++b)
      for (std::int64_t t = 0; t < d_.seq; ++t)
        for (std::int64_t h = 0; h < d_.heads; ++h) {
          T* x = static_cast<T*>(args.x) + (b * d_.seq + t) * d_.stride + h * d_.head_dim;
          for (std::int64_t i = 0; i < half; ++i) {
            double first = widen(x[i]), second = widen(x[half + i]);
            const double s = widen(sine[t * half + i]);
            functors::Rotate()(first, second, widen(cosine[t * half + i]), d_.inverse ? -s : s);
            x[i] = narrow<T>(first);
            x[half + i] = narrow<T>(second);
          }
        }
  }
};

}  // namespace

template <>
Made<Rotary> make_reference(const RotaryDesc& d) {
  return by_type<Rotary, ReferenceRotary>(d.dtype, d);
}

}  // namespace assay::ops::reference
