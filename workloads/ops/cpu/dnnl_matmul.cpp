// oneDNN's matmul and inner-product primitives behind the Matmul op. Scratch memory is the caller's.
#include "workloads/ops/cpu/dnnl_matmul.h"

#include "harness/core/error.h"
#include "workloads/ops/cpu/dnnl_isa.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <array>

namespace assay::ops {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return Type::f32;
    case DType::bf16: return Type::bf16;
    case DType::u8: return Type::u8;
    case DType::s8: return Type::s8;
    case DType::i32: return Type::s32;
    default: throw Error(fmt::format("oneDNN has no product of {}", name_of(dtype)));
  }
}

dnnl::engine& engine() {
  static dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

// What a primitive needs to run, whichever primitive it is.
struct Built {
  dnnl::primitive primitive;
  std::string implementation;
  memory::desc a, b, out, scratch;  // b in the layout that the primitive takes
  memory::desc canonical_b;         // the same matrix as the caller holds it
};

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // f32 means f32, whatever ONEDNN_DEFAULT_FPMATH_MODE says.
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attr;
}

template <typename Primitive>
Built built_from(const typename Primitive::primitive_desc& pd, const memory::desc& canonical_b) {
  return {Primitive(pd), pd.impl_info_str(),   pd.src_desc(), pd.weights_desc(),
          pd.dst_desc(), pd.scratchpad_desc(), canonical_b};
}

Built build_matmul(const MatmulDesc& d) {
  const memory::desc a({d.m, d.k}, type_of(d.a), d.transpose_a ? Tag::ba : Tag::ab);
  const memory::desc b({d.k, d.n}, type_of(d.b), d.transpose_b ? Tag::ba : Tag::ab);
  const memory::desc any({d.k, d.n}, type_of(d.b), Tag::any);
  const memory::desc out({d.m, d.n}, type_of(d.out), Tag::ab);
  const dnnl::matmul::primitive_desc pd(engine(), a, d.form == WeightForm::plain ? b : any, out, attributes());
  return built_from<dnnl::matmul>(pd, b);
}

Built build_inner_product(const MatmulDesc& d) {
  const memory::desc a({d.m, d.k}, type_of(d.a), Tag::ab);
  // oneDNN's inner product holds weights as (N, K).
  const memory::desc b({d.n, d.k}, type_of(d.b), d.transpose_b ? Tag::ab : Tag::ba);
  const memory::desc any({d.n, d.k}, type_of(d.b), Tag::any);
  const memory::desc out({d.m, d.n}, type_of(d.out), Tag::ab);
  const dnnl::inner_product_forward::primitive_desc pd(engine(), dnnl::prop_kind::forward_inference, a, any, out,
                                                       attributes());
  return built_from<dnnl::inner_product_forward>(pd, b);
}

class DnnlMatmul final : public Matmul {
 public:
  DnnlMatmul(const MatmulDesc& desc, Built built)
      : built_(std::move(built)),
        packs_(desc.form != WeightForm::plain),
        isa_(dnnl_kernel_isa(built_.implementation, desc.a, static_cast<unsigned>(dnnl::get_effective_cpu_isa()))),
        saturates_(desc.a == DType::u8 && saturates_int8(isa_)),
        stream_(engine()),
        a_(built_.a, engine(), nullptr),
        b_(built_.b, engine(), nullptr),
        out_(built_.out, engine(), nullptr),
        scratch_(built_.scratch, engine(), nullptr),
        arguments_{{{DNNL_ARG_SRC, a_.get()},
                    {DNNL_ARG_WEIGHTS, b_.get()},
                    {DNNL_ARG_DST, out_.get()},
                    {DNNL_ARG_SCRATCHPAD, scratch_.get()}}} {}

  std::string implementation() const override { return built_.implementation; }
  std::string isa() const override { return isa_; }
  std::size_t workspace_bytes() const override { return built_.scratch.get_size(); }
  std::size_t packed_bytes() const override { return packs_ ? built_.b.get_size() : 0; }
  bool saturates_pairs() const override { return saturates_; }

  void pack(Stream&, const void* b, void* packed) override {
    if (!packs_) return;
    memory from(built_.canonical_b, engine(), const_cast<void*>(b));
    memory to(built_.b, engine(), packed);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
  }

  void run(Stream&, const MatmulArgs& args) override {
    // oneDNN takes no const pointers; sources are only read.
    a_.set_data_handle(const_cast<void*>(args.a));
    b_.set_data_handle(const_cast<void*>(args.b));
    out_.set_data_handle(args.out);
    scratch_.set_data_handle(args.workspace);
    const dnnl_status_t status = dnnl_primitive_execute(built_.primitive.get(), stream_.get(),
                                                        static_cast<int>(arguments_.size()), arguments_.data());
    ASSAY_CHECK(status == dnnl_success, "oneDNN {} failed with status {}", built_.implementation, int{status});
  }

 private:
  Built built_;
  bool packs_;
  std::string isa_;
  bool saturates_;
  dnnl::stream stream_;
  memory a_, b_, out_, scratch_;
  std::array<dnnl_exec_arg_t, 4> arguments_;
};

}  // namespace

Made<Matmul> make_dnnl_matmul(const MatmulDesc& d) {
  const bool inner_product = d.form == WeightForm::inner_product;
  if (inner_product && d.transpose_a) return Made<Matmul>::no("an inner product takes its first operand untransposed");
  const std::string what = fmt::format("{} x {} into {}", name_of(d.a), name_of(d.b), name_of(d.out));
  try {
    Built built = inner_product ? build_inner_product(d) : build_matmul(d);
    if (is_reference_kernel(built.implementation))
      return Made<Matmul>::no(
          fmt::format("oneDNN has only a reference kernel ({}) for {} on this CPU", built.implementation, what));
    return std::unique_ptr<Matmul>(std::make_unique<DnnlMatmul>(d, std::move(built)));
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments)
      throw Error(fmt::format("oneDNN cannot build {}: {}", what, error.what()));
    return Made<Matmul>::no(fmt::format("oneDNN has no kernel for {} on this CPU", what));
  }
}

std::string dnnl_version_text() {
  const dnnl::version_t* v = dnnl::version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace assay::ops
