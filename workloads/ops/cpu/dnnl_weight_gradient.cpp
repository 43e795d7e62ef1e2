// Products of two activations, dW (out, in) = or += dY^T X, where packing an operand in advance does not pay. Choices
// are from measurements of oneDNN 3.2 on Zen 4 and Zen 5 (f32 and bf16, language model sizes). Its inner product's
// backward pass, which packs both operands as it goes, is as fast as packed weights and also sums the bias gradient,
// but it cannot accumulate. Where it runs the JIT GEMM in f32, that is called through oneDNN's BLAS interface instead,
// which accumulates; our own kernel sums the bias gradient faster. To accumulate, bf16 packs X, then multiplies.
#include "harness/core/error.h"
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/dnnl_common.h"
#include "workloads/ops/cpu/dnnl_made.h"
#include "workloads/ops/cpu/dnnl_product.h"

#include <oneapi/dnnl/dnnl.h>

namespace assay::ops {

namespace {

using dnnl::memory;

class InnerProductGradient final : public DnnlProduct {
 public:
  InnerProductGradient(const MatmulDesc& desc, DnnlCall call)
      : DnnlProduct(desc, call.implementation()), call_(std::move(call)) {}

  std::size_t workspace_bytes() const override { return call_.scratch_bytes(); }
  void run(Stream&, const MatmulArgs& args) override {
    if (d_.row_sums)
      call_.run({args.b, args.a, args.out, args.row_sums, args.workspace});
    else
      call_.run({args.b, args.a, args.out, args.workspace});
  }

 private:
  DnnlCall call_;
};

std::unique_ptr<Matmul> inner_product_gradient(const MatmulDesc& d) {
  const memory::desc x = dnnl_matrix(d.k, d.n, d.b), dy = dnnl_matrix(d.k, d.m, d.a), dw = dnnl_matrix(d.m, d.n, d.out);
  const memory::desc db({d.m}, memory::data_type::f32, memory::format_tag::a);
  const dnnl::primitive_attr attr = dnnl_attributes();
  const dnnl::inner_product_forward::primitive_desc hint(
      dnnl_engine(), dnnl::prop_kind::forward_training, x,
      memory::desc({d.m, d.n}, dnnl_type(d.b), memory::format_tag::any), dy, attr);
  using Primitive = dnnl::inner_product_backward_weights;
  const Primitive::primitive_desc pd = d.row_sums ? Primitive::primitive_desc(dnnl_engine(), x, dw, db, dy, hint, attr)
                                                  : Primitive::primitive_desc(dnnl_engine(), x, dw, dy, hint, attr);
  std::vector<DnnlCall::Binding> bindings{{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw}};
  if (d.row_sums) bindings.emplace_back(DNNL_ARG_DIFF_BIAS, db);
  return std::make_unique<InnerProductGradient>(d, dnnl_call<Primitive>(pd, std::move(bindings)));
}

class SgemmGradient final : public DnnlProduct {
 public:
  explicit SgemmGradient(const MatmulDesc& desc) : DnnlProduct(desc, "sgemm:jit") {}
  void run(Stream&, const MatmulArgs& args) override {
    const dnnl_status_t status = dnnl_sgemm('T', 'N', d_.m, d_.n, d_.k, 1.0f, static_cast<const float*>(args.a), d_.m,
                                            static_cast<const float*>(args.b), d_.n, d_.accumulate ? 1.0f : 0.0f,
                                            static_cast<float*>(args.out), d_.n);
    ASSAY_CHECK(status == dnnl_success, "oneDNN's sgemm failed with status {}", int{status});
    sum_rows(args);
  }
};

class AccumulatedPacked final : public DnnlProduct {
 public:
  AccumulatedPacked(const MatmulDesc& desc, DnnlCall call, const memory::desc& packed)
      : DnnlProduct(desc, call.implementation()),
        call_(std::move(call)),
        pack_(dnnl_matrix(desc.k, desc.n, desc.b), packed),
        packed_bytes_((packed.get_size() + 63) / 64 * 64) {}
  std::size_t workspace_bytes() const override { return packed_bytes_ + call_.scratch_bytes(); }
  void run(Stream&, const MatmulArgs& args) override {
    pack_.run(args.b, args.workspace);
    call_.run({args.a, args.workspace, args.out, static_cast<char*>(args.workspace) + packed_bytes_});
    sum_rows(args);
  }

 private:
  DnnlCall call_;
  DnnlReorder pack_;
  std::size_t packed_bytes_;
};

std::unique_ptr<Matmul> accumulated_packed(const MatmulDesc& d) {
  const memory::desc a({d.m, d.k}, dnnl_type(d.a), memory::dims{1, d.m});
  const memory::desc x({d.k, d.n}, dnnl_type(d.b), memory::format_tag::any);
  const dnnl::matmul::primitive_desc pd(dnnl_engine(), a, x, dnnl_matrix(d.m, d.n, d.out), dnnl_attributes(true));
  DnnlCall call = dnnl_call<dnnl::matmul>(
      pd, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}});
  return std::make_unique<AccumulatedPacked>(d, std::move(call), pd.weights_desc());
}

}  // namespace

bool is_weight_gradient(const MatmulDesc& d) {
  const bool types = (d.a == DType::f32 || d.a == DType::bf16) && d.out == DType::f32;
  return types && d.transpose_a && !d.transpose_b && d.form == WeightForm::plain && !d.bias &&
         d.epilogue == Epilogue::none;
}

Made<Matmul> make_dnnl_weight_gradient(const MatmulDesc& d) {
  return made_by_dnnl<Matmul>(fmt::format("a weight gradient of {}", name_of(d.a)), [&]() -> std::unique_ptr<Matmul> {
    MatmulDesc written = d;
    written.accumulate = false;
    auto by_inner_product = inner_product_gradient(written);
    // The BLAS interface does not name its kernel; if the inner product runs the JIT GEMM, so does the BLAS interface.
    if (d.a == DType::f32 && by_inner_product->implementation().ends_with("gemm:jit"))
      return std::make_unique<SgemmGradient>(d);
    if (!d.accumulate) return by_inner_product;
    return accumulated_packed(d);
  });
}

}  // namespace assay::ops
