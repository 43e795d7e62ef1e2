// Shared by the ops that run our own kernels.
#pragma once

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/op.h"

#include <fmt/format.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace assay::ops {

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
