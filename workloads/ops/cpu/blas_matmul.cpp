// cblas_dgemm behind the Matmul op.
#include "workloads/ops/cpu/cpu_ops.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <limits>

namespace assay::ops {

namespace {

// The values of CBLAS_ORDER and CBLAS_TRANSPOSE.
constexpr int row_major = 101;
constexpr int not_transposed = 111;
constexpr int transposed = 112;

class BlasMatmul final : public Matmul {
 public:
  BlasMatmul(const MatmulDesc& desc, const BlasLibrary& library) : d_(desc), library_(library) {}

  std::string implementation() const override { return library_.name + ":" + library_.core; }
  std::string isa() const override { return library_.isa(); }

  void run(Stream&, const MatmulArgs& args) override {
    if (library_.set_threads) library_.set_threads(omp_get_max_threads());
    const int m = static_cast<int>(d_.m), n = static_cast<int>(d_.n), k = static_cast<int>(d_.k);
    library_.dgemm(row_major, d_.transpose_a ? transposed : not_transposed,
                   d_.transpose_b ? transposed : not_transposed, m, n, k, 1.0, static_cast<const double*>(args.a),
                   d_.transpose_a ? m : k, static_cast<const double*>(args.b), d_.transpose_b ? k : n,
                   d_.accumulate ? 1.0 : 0.0, static_cast<double*>(args.out), n);
  }

 private:
  MatmulDesc d_;
  BlasLibrary library_;
};

}  // namespace

Made<Matmul> make_blas_matmul(const MatmulDesc& d, const BlasLibrary& library) {
  if (d.form != WeightForm::plain) return Made<Matmul>::no("a BLAS cannot pack its operands in advance");
  if (d.bias || d.row_sums || d.epilogue != Epilogue::none)
    return Made<Matmul>::no("a BLAS has no bias, epilogue or row sums");
  if (std::max({d.m, d.n, d.k}) > std::numeric_limits<int>::max())
    return Made<Matmul>::no(fmt::format("{} has 32-bit sizes", library.name));
  return std::unique_ptr<Matmul>(std::make_unique<BlasMatmul>(d, library));
}

}  // namespace assay::ops
