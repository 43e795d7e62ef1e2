// oneDNN's convolutions over NHWC images. Weights are packed into the primitive's layout, and the weights' gradient is
// reordered from that layout to the canonical one.
#include "workloads/ops/cpu/cpu_ops.h"

#include "workloads/ops/cpu/dnnl_common.h"
#include "workloads/ops/cpu/dnnl_made.h"

namespace assay::ops {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

// Layouts of a convolution's arrays in oneDNN's terms.
struct Layouts {
  explicit Layouts(const ConvDesc& desc) : d(desc), type(dnnl_type(desc.dtype)) {}

  memory::desc x() const { return {{d.n, d.c, d.h, d.w}, type, Tag::nhwc}; }
  memory::desc y() const { return {{d.n, d.k, d.p(), d.q()}, type, Tag::nhwc}; }
  memory::desc weights(Type of) const { return {weight_dims(), of, Tag::any}; }
  // (K, R, S, C / groups)
  memory::desc canonical(DType of) const {
    return {weight_dims(), dnnl_type(of), d.groups > 1 ? Tag::abdec : Tag::acdb};
  }
  memory::dims strides() const { return {d.stride, d.stride}; }
  memory::dims padding() const { return {d.padding, d.padding}; }
  // Padding at the bottom and right edges: less than `padding` if the stride leaves rows over.
  memory::dims padding_end() const {
    return {(d.p() - 1) * d.stride + d.r - d.h - d.padding, (d.q() - 1) * d.stride + d.s - d.w - d.padding};
  }

  ConvDesc d;
  Type type;

 private:
  memory::dims weight_dims() const {
    if (d.groups > 1) return {d.groups, d.k / d.groups, d.c / d.groups, d.r, d.s};
    return {d.k, d.c, d.r, d.s};
  }
};

constexpr auto algorithm = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward_desc(const Layouts& l) {
  return {dnnl_engine(),     dnnl::prop_kind::forward_training,
          algorithm,         l.x(),
          l.weights(l.type), l.y(),
          l.strides(),       l.padding(),
          l.padding_end(),   dnnl_attributes()};
}

// Common to the three ops.
template <typename Base>
class DnnlConv : public Base {
 public:
  std::string implementation() const override { return call_.implementation(); }
  std::string isa() const override {
    return dnnl_kernel_isa(call_.implementation(), dtype_, static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
  }
  std::size_t workspace_bytes() const override { return call_.scratch_bytes(); }

 protected:
  DnnlConv(DType dtype, DnnlCall call) : dtype_(dtype), call_(std::move(call)) {}

  DType dtype_;
  DnnlCall call_;
};

// Ops that read packed weights.
template <typename Base>
class DnnlConvWithWeights : public DnnlConv<Base> {
 public:
  std::size_t packed_bytes() const override { return packed_bytes_; }
  void pack(Stream&, const void* w, void* packed) override { reorder_.run(w, packed); }

 protected:
  DnnlConvWithWeights(const Layouts& layouts, const memory::desc& packed, DnnlCall call)
      : DnnlConv<Base>(layouts.d.dtype, std::move(call)),
        packed_bytes_(packed.get_size()),
        reorder_(layouts.canonical(layouts.d.pack_from), packed) {}

 private:
  std::size_t packed_bytes_;
  DnnlReorder reorder_;
};

class DnnlConvForward final : public DnnlConvWithWeights<ConvForward> {
 public:
  DnnlConvForward(const Layouts& layouts, const dnnl::convolution_forward::primitive_desc& pd)
      : DnnlConvWithWeights(
            layouts, pd.weights_desc(),
            DnnlCall(
                dnnl::convolution_forward(pd), pd.impl_info_str(),
                {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}},
                pd.scratchpad_desc())) {}

  void run(Stream&, const Args& args) override { call_.run({args.x, args.packed, args.y, args.workspace}); }
};

class DnnlConvBackwardData final : public DnnlConvWithWeights<ConvBackwardData> {
 public:
  DnnlConvBackwardData(const Layouts& layouts, const dnnl::convolution_backward_data::primitive_desc& pd)
      : DnnlConvWithWeights(layouts, pd.weights_desc(),
                            DnnlCall(dnnl::convolution_backward_data(pd), pd.impl_info_str(),
                                     {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                      {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                      {DNNL_ARG_DIFF_SRC, pd.diff_src_desc()}},
                                     pd.scratchpad_desc())) {}

  void run(Stream&, const Args& args) override { call_.run({args.dy, args.packed, args.dx, args.workspace}); }
};

class DnnlConvBackwardWeights final : public DnnlConv<ConvBackwardWeights> {
 public:
  DnnlConvBackwardWeights(const Layouts& layouts, const dnnl::convolution_backward_weights::primitive_desc& pd)
      : DnnlConv(layouts.d.dtype, DnnlCall(dnnl::convolution_backward_weights(pd), pd.impl_info_str(),
                                           {{DNNL_ARG_SRC, pd.src_desc()},
                                            {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                            {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}},
                                           pd.scratchpad_desc())) {
    const memory::desc canonical = layouts.canonical(layouts.d.gradient);
    if (pd.diff_weights_desc() == canonical && !layouts.d.accumulate) return;
    reorder_.emplace(pd.diff_weights_desc(), canonical, layouts.d.accumulate);
    own_bytes_ = (pd.diff_weights_desc().get_size() + 63) / 64 * 64;
  }

  // The gradient in the primitive's layout, then the primitive's scratch.
  std::size_t workspace_bytes() const override { return own_bytes_ + call_.scratch_bytes(); }

  void run(Stream&, const Args& args) override {
    void* own = reorder_ ? args.workspace : args.dw;
    call_.run({args.x, args.dy, own, static_cast<char*>(args.workspace) + own_bytes_});
    if (reorder_) reorder_->run(own, args.dw);
  }

 private:
  std::optional<DnnlReorder> reorder_;
  std::size_t own_bytes_ = 0;
};

// `build` makes the primitive's descriptor.
template <typename Op, typename Build>
Made<Op> make(const ConvDesc& d, const char* pass, const Build& build) {
  for (const DType dtype : {d.dtype, d.pack_from, d.gradient})
    if (dtype != DType::f32 && dtype != DType::bf16)
      return Made<Op>::no(fmt::format("the cpu backend's convolution is for f32 and bf16, not {}", name_of(dtype)));
  const std::string what = fmt::format("the {} of a convolution in {}", pass, name_of(d.dtype));
  return made_by_dnnl<Op>(what, [&]() -> std::unique_ptr<Op> {
    const Layouts layouts(d);
    const auto pd = build(layouts);
    if constexpr (std::is_same_v<Op, ConvForward>)
      return std::make_unique<DnnlConvForward>(layouts, pd);
    else if constexpr (std::is_same_v<Op, ConvBackwardData>)
      return std::make_unique<DnnlConvBackwardData>(layouts, pd);
    else
      return std::make_unique<DnnlConvBackwardWeights>(layouts, pd);
  });
}

}  // namespace

Made<ConvForward> make_dnnl_conv_forward(const ConvDesc& desc) {
  return make<ConvForward>(desc, "forward pass", forward_desc);
}

Made<ConvBackwardData> make_dnnl_conv_backward_data(const ConvDesc& desc) {
  return make<ConvBackwardData>(desc, "input's gradient", [](const Layouts& l) {
    return dnnl::convolution_backward_data::primitive_desc(dnnl_engine(), algorithm, l.x(), l.weights(l.type), l.y(),
                                                           l.strides(), l.padding(), l.padding_end(), forward_desc(l),
                                                           dnnl_attributes());
  });
}

Made<ConvBackwardWeights> make_dnnl_conv_backward_weights(const ConvDesc& desc) {
  return make<ConvBackwardWeights>(desc, "weights' gradient", [](const Layouts& l) {
    return dnnl::convolution_backward_weights::primitive_desc(dnnl_engine(), algorithm, l.x(), l.weights(Type::f32),
                                                              l.y(), l.strides(), l.padding(), l.padding_end(),
                                                              forward_desc(l), dnnl_attributes());
  });
}

}  // namespace assay::ops
