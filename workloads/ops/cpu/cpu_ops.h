// The factories of the CPU backend, and what its ops with our own kernels share.
#pragma once

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/cpu/blas_library.h"
#include "workloads/ops/op.h"

#include <fmt/format.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace assay::ops {

// Specialised for every op that the CPU has, except products. By our own vectorised kernels, in f32 and bf16; a
// convolution may be oneDNN's instead, by a fixed rule, so that equal descriptors give equal bits.
template <typename Op>
Made<Op> make_cpu(const typename Op::Desc& desc);

// Products in f64 by a BLAS.
Made<Matmul> make_blas_matmul(const MatmulDesc& desc, const BlasLibrary& library);
// Products by oneDNN: f32, bf16, u8 x s8, in every form, with every epilogue and option. Fixed rules choose the
// primitive, so a machine always computes the same way.
Made<Matmul> make_dnnl_matmul(const MatmulDesc& desc);
// Products of bf16 by the processor's tile instructions, with every epilogue and option: weights in the form `tiles`,
// or b as stored and not transposed, which each call packs.
Made<Matmul> make_tile_matmul(const MatmulDesc& desc);
// Whether dnnl_weight_gradient.cpp has a faster way for this product: a is stored transposed, b is not.
bool is_weight_gradient(const MatmulDesc& desc);
Made<Matmul> make_dnnl_weight_gradient(const MatmulDesc& desc);

// Convolutions by oneDNN, in f32 and bf16.
Made<ConvForward> make_dnnl_conv_forward(const ConvDesc& desc);
Made<ConvBackwardData> make_dnnl_conv_backward_data(const ConvDesc& desc);
Made<ConvBackwardWeights> make_dnnl_conv_backward_weights(const ConvDesc& desc);

// A convolution's weight gradient as a product of packed panels, for any window and stride.
bool packed_gradient_supports(const ConvDesc& desc);
// Whether it is faster than oneDNN's, by a fixed rule.
bool packed_gradient_suits(const ConvDesc& desc);
// Takes only descriptors that it supports.
std::unique_ptr<ConvBackwardWeights> make_packed_gradient(const ConvDesc& desc);

// 3 x 3 convolutions in f32 by Winograd's F(2x2, 3x3): 2.25 times fewer products than the direct method, with errors of
// the same size. These take descriptors that suit. `plain` is oneDNN's op, which is only timed: choice() tells how much
// longer it takes.
std::unique_ptr<ConvForward> make_winograd_forward(const ConvDesc& desc, Made<ConvForward> plain);
std::unique_ptr<ConvBackwardData> make_winograd_backward_data(const ConvDesc& desc, Made<ConvBackwardData> plain);
std::unique_ptr<ConvBackwardWeights> make_winograd_backward_weights(const ConvDesc& desc,
                                                                    Made<ConvBackwardWeights> plain);

template <typename Base>
class VectorOp : public Base {
 public:
  std::string implementation() const override { return "assay:" + isa(); }
  std::string isa() const override { return std::string(cpu::name_of(cpu::best_isa())); }
};

// The reason if a type is neither f32 nor bf16; else empty.
inline std::string type_problem(std::string_view op, std::initializer_list<DType> types) {
  for (const DType dtype : types)
    if (dtype != DType::f32 && dtype != DType::bf16)
      return fmt::format("the cpu backend's {} is for f32 and bf16, not {}", op, name_of(dtype));
  return {};
}

template <typename Interface, typename Implementation, typename Desc>
Made<Interface> make_unless(std::string problem, const Desc& desc) {
  if (!problem.empty()) return Made<Interface>::no(std::move(problem));
  return std::unique_ptr<Interface>(std::make_unique<Implementation>(desc));
}

}  // namespace assay::ops
