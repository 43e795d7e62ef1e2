// The oracle's casts and sums.
#include "tests/oracle/reference_op.h"

namespace assay::ops::reference {

namespace {

class ReferenceElementwise final : public ReferenceOp<Elementwise> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const Array a(args.a, d_.in), b(args.b, d_.in), out(args.out, d_.out);
    const auto value = [&](std::int64_t i) {
      switch (d_.kind) {
        case ElementwiseKind::add: return a[i] + b[i];
        case ElementwiseKind::combine: return d_.alpha * a[i] + d_.beta * b[i];
        case ElementwiseKind::cast: break;
      }
      return a[i];
    };
    for (std::int64_t i = 0; i < d_.count; ++i) out.set(i, value(i));
  }
};

}  // namespace

template <>
Made<Elementwise> make_reference(const ElementwiseDesc& d) {
  for (const DType dtype : {d.in, d.out})
    if (!is_float(dtype)) return no_type<Elementwise>(dtype);
  return std::unique_ptr<Elementwise>(std::make_unique<ReferenceElementwise>(d));
}

}  // namespace assay::ops::reference
