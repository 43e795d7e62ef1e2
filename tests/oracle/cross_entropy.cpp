// The oracle's softmax and cross-entropy.
#include "tests/oracle/reference_op.h"

#include <algorithm>
#include <cmath>

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceCrossEntropy final : public ReferenceOp<CrossEntropy> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    for (std::int64_t r = 0; r < d_.rows; ++r) {
      T* logits = static_cast<T*>(args.logits) + r * d_.stride;
      const std::int32_t target = args.targets[r];
      const bool valid = target != d_.ignored;
      const double log_sum_exp = valid ? log_sum_exp_of(logits) : 0;
      double loss = 0;
      if (valid) {
        loss = log_sum_exp - (1 - d_.smoothing) * widen(logits[target]);
        for (std::int64_t c = 0; d_.smoothing > 0 && c < d_.classes; ++c)  // 0 x -inf is NaN
          loss -= d_.smoothing / static_cast<double>(d_.classes) * widen(logits[c]);
        args.sums->loss += loss;
        args.sums->valid += 1;
        args.sums->correct += first_largest(logits) == target;
      }
      if (args.row_losses) static_cast<Statistic<T>*>(args.row_losses)[r] = narrow<Statistic<T>>(loss);
      if (!d_.gradient) continue;
      for (std::int64_t c = 0; c < d_.classes; ++c) {
        const double target_probability =
            d_.smoothing / static_cast<double>(d_.classes) + (c == target ? 1 - d_.smoothing : 0);
        const double gradient = valid ? std::exp(widen(logits[c]) - log_sum_exp) - target_probability : 0;
        logits[c] = narrow<T>(gradient * widen(*args.scale));
      }
    }
  }

 private:
  double log_sum_exp_of(const T* logits) const {
    double largest = widen(logits[0]), sum = 0;
    for (std::int64_t c = 1; c < d_.classes; ++c) largest = std::max(largest, widen(logits[c]));
    for (std::int64_t c = 0; c < d_.classes; ++c) sum += std::exp(widen(logits[c]) - largest);
    return largest + std::log(sum);
  }

  std::int64_t first_largest(const T* logits) const {
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < d_.classes; ++c)
      if (widen(logits[c]) > widen(logits[best])) best = c;
    return best;
  }
};

}  // namespace

template <>
Made<CrossEntropy> make_reference(const CrossEntropyDesc& d) {
  return by_type<CrossEntropy, ReferenceCrossEntropy>(d.dtype, d);
}

}  // namespace assay::ops::reference
