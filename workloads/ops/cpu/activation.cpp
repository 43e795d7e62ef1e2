// GELU over flat ranges, the SiLU gate over rows.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/activation_kernels.h"
#include "workloads/ops/cpu/parallel.h"

namespace assay::ops {

namespace {

constexpr std::int64_t activation_min_elements = 4096;  // per thread

const ActivationKernels::Kind& kind_of(const ActivationDesc& d) {
  const ActivationKernels& kernels = cpu::kernels<ActivationKernels>();
  const ActivationKernels::Type& type = d.dtype == DType::f32 ? kernels.f32 : kernels.bf16;
  switch (d.kind) {
    case ActivationKind::gelu_tanh: return type.gelu_tanh;
    case ActivationKind::gelu_erf: return type.gelu_erf;
    case ActivationKind::silu_gate: break;
  }
  return type.silu_gate;
}

// Splits the work among threads: by element, or by whole row for a gate.
class Split {
 public:
  explicit Split(const ActivationDesc& d)
      : count_(d.kind == ActivationKind::silu_gate ? d.rows : d.rows * d.columns),
        granule_(d.kind == ActivationKind::silu_gate ? 1 : 64),
        parts_(parts_for(d.rows * d.columns, activation_min_elements)) {}
  template <typename Work>
  void run(const Work& work) const {
    for_ranges(count_, granule_, parts_, work);
  }

 private:
  std::int64_t count_;
  std::int64_t granule_;
  int parts_;
};

class CpuActivationForward final : public VectorOp<ActivationForward> {
 public:
  CpuActivationForward(const ActivationDesc& desc)
      : split_(desc), columns_(desc.columns), kernel_(kind_of(desc).forward) {}

  void run(Stream&, const Args& args) override {
    split_.run([&](std::int64_t begin, std::int64_t end) { kernel_(args.x, args.y, columns_, begin, end); });
  }

 private:
  Split split_;
  std::int64_t columns_;
  ActivationKernels::Forward kernel_;
};

class CpuActivationBackward final : public VectorOp<ActivationBackward> {
 public:
  CpuActivationBackward(const ActivationDesc& desc)
      : split_(desc), columns_(desc.columns), kernel_(kind_of(desc).backward) {}

  void run(Stream&, const Args& args) override {
    split_.run([&](std::int64_t begin, std::int64_t end) { kernel_(args.x, args.dy, args.dx, columns_, begin, end); });
  }

 private:
  Split split_;
  std::int64_t columns_;
  ActivationKernels::Backward kernel_;
};

std::string problem(const ActivationDesc& d) {
  if (d.rows < 0 || d.columns <= 0) return fmt::format("an activation of {} rows by {} columns", d.rows, d.columns);
  return type_problem("activation", {d.dtype});
}

}  // namespace

template <>
Made<ActivationForward> make_cpu(const ActivationDesc& desc) {
  return make_unless<ActivationForward, CpuActivationForward>(problem(desc), desc);
}

template <>
Made<ActivationBackward> make_cpu(const ActivationDesc& desc) {
  return make_unless<ActivationBackward, CpuActivationBackward>(problem(desc), desc);
}

}  // namespace assay::ops
