// A backend makes ops for a device: the module cpu or cuda. Tests have another, the oracle.
#pragma once

#include "workloads/ops/activation.h"
#include "workloads/ops/attention.h"
#include "workloads/ops/batch_norm.h"
#include "workloads/ops/conv.h"
#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/elementwise.h"
#include "workloads/ops/embedding.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/norm.h"
#include "workloads/ops/optimizer.h"
#include "workloads/ops/pool.h"
#include "workloads/ops/quantize.h"
#include "workloads/ops/rotary.h"

#include <functional>
#include <memory>
#include <string>
#include <tuple>

namespace assay::ops {

// One member for every op.
template <template <typename> class Of>
using EachOp =
    std::tuple<Of<Matmul>, Of<ConvForward>, Of<ConvBackwardData>, Of<ConvBackwardWeights>, Of<BatchNormForward>,
               Of<BatchNormBackward>, Of<PoolForward>, Of<PoolBackward>, Of<NormForward>, Of<NormBackward>,
               Of<AttentionForward>, Of<AttentionBackward>, Of<Rotary>, Of<ActivationForward>, Of<ActivationBackward>,
               Of<EmbeddingForward>, Of<EmbeddingBackward>, Of<CrossEntropy>, Of<Optimizer>, Of<GradientNorm>,
               Of<Elementwise>, Of<Quantize>, Of<ScaleUpdate>>;

template <typename Op>
using Maker = std::function<Made<Op>(const typename Op::Desc&)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;  // reference, cpu, cuda
  // Libraries and versions, as recorded: "oneDNN 3.2.0; OpenBLAS 0.3.21 (SkylakeX)".
  virtual std::string libraries() const = 0;

  // Builds an op, or gives the reason this device has none, or that no device could make it: problem_of(desc).
  template <typename Op>
  Made<Op> make(const typename Op::Desc& desc) {
    if constexpr (requires { problem_of(desc); })
      if (auto problem = problem_of(desc)) return Made<Op>::no(*problem);
    return std::get<Maker<Op>>(makers_)(desc);
  }

 protected:
  // `make.template operator()<Op>(desc)` builds an op for a valid descriptor.
  template <typename Make>
  explicit Backend(const Make& make) {
    std::apply([&](auto&... makers) { (set(makers, make), ...); }, makers_);
  }

 private:
  template <typename Op, typename Make>
  static void set(Maker<Op>& maker, const Make& make) {
    maker = [make](const typename Op::Desc& desc) { return make.template operator()<Op>(desc); };
  }

  EachOp<Maker> makers_;
};

// The backend for the device's kind, from its module, loaded once per process. Throws Error if the module is missing.
std::shared_ptr<Backend> backend_for(Device& device);

}  // namespace assay::ops
