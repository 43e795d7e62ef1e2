// Names and row sums of the products by oneDNN.
#pragma once

#include "workloads/ops/cpu/dnnl_isa.h"
#include "workloads/ops/cpu/product_sums.h"
#include "workloads/ops/matmul.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <optional>
#include <string>
#include <utility>

namespace assay::ops {

class DnnlProduct : public Matmul {
 public:
  DnnlProduct(const MatmulDesc& desc, std::string implementation)
      : d_(desc),
        implementation_(std::move(implementation)),
        isa_(dnnl_kernel_isa(implementation_, desc.a, static_cast<unsigned>(dnnl::get_effective_cpu_isa()))) {
    if (desc.row_sums) row_sums_.emplace(desc);
  }

  std::string implementation() const override { return implementation_; }
  std::string isa() const override { return isa_; }

 protected:
  // Sums them with our own kernels; a primitive may do it itself.
  void sum_rows(const MatmulArgs& args) const {
    if (row_sums_) row_sums_->run(args.a, static_cast<float*>(args.row_sums));
  }

  MatmulDesc d_;

 private:
  std::string implementation_;
  std::string isa_;
  std::optional<RowSums> row_sums_;
};

}  // namespace assay::ops
