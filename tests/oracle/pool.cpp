// The oracle's pooling.
#include "tests/oracle/reference_op.h"

#include <algorithm>
#include <cmath>

namespace assay::ops::reference {

namespace {

// The part of a window inside the image.
struct Window {
  Window(const PoolDesc& d, std::int64_t p, std::int64_t q)
      : top(std::max<std::int64_t>(0, p * d.stride - d.padding)),
        bottom(std::min(d.h, p * d.stride - d.padding + d.window_h)),
        left(std::max<std::int64_t>(0, q * d.stride - d.padding)),
        right(std::min(d.w, q * d.stride - d.padding + d.window_w)) {}
  double count() const { return static_cast<double>((bottom - top) * (right - left)); }

  std::int64_t top, bottom, left, right;
};

template <typename Visit>
void for_each_window(const PoolDesc& d, Visit visit) {
  std::int64_t out = 0;
  for (std::int64_t n = 0; n < d.n; ++n)
    for (std::int64_t p = 0; p < d.p(); ++p)
      for (std::int64_t q = 0; q < d.q(); ++q)
        for (std::int64_t c = 0; c < d.c; ++c) visit(n, Window(d, p, q), c, out++);
}

std::int64_t index_of(const PoolDesc& d, std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return ((n * d.h + h) * d.w + w) * d.c + c;
}

template <typename T>
class ReferencePoolForward final : public ReferenceOp<PoolForward> {
 public:
  using ReferenceOp::ReferenceOp;

  // The index of each maximum in x.
  std::size_t saved_bytes() const override {
    if (d_.kind == PoolKind::average) return 0;
    return static_cast<std::size_t>(d_.n * d_.p() * d_.q() * d_.c) * sizeof(std::int64_t);
  }

  void run(Stream&, const Args& args) override {
    const auto* x = static_cast<const T*>(args.x);
    auto* y = static_cast<T*>(args.y);
    auto* saved = static_cast<std::int64_t*>(args.saved);
    for_each_window(d_, [&](std::int64_t n, const Window& window, std::int64_t c, std::int64_t out) {
      std::int64_t best = index_of(d_, n, window.top, window.left, c);
      double sum = 0;
      for (std::int64_t h = window.top; h < window.bottom; ++h)
        for (std::int64_t w = window.left; w < window.right; ++w) {
          const std::int64_t i = index_of(d_, n, h, w, c);
          sum += widen(x[i]);
          if (widen(x[i]) > widen(x[best]) || (std::isnan(widen(x[i])) && !std::isnan(widen(x[best])))) best = i;
        }
      if (d_.kind == PoolKind::average) {
        y[out] = narrow<T>(sum / window.count());
      } else {
        y[out] = x[best];
        saved[out] = best;
      }
    });
  }
};

template <typename T>
class ReferencePoolBackward final : public ReferenceOp<PoolBackward> {
 public:
  using ReferenceOp::ReferenceOp;

  // Sums in double, before rounding.
  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(elements()) * sizeof(double); }

  void run(Stream&, const Args& args) override {
    const auto* dy = static_cast<const T*>(args.dy);
    const auto* saved = static_cast<const std::int64_t*>(args.saved);
    auto* sums = static_cast<double*>(args.workspace);
    std::fill_n(sums, elements(), 0.0);
    for_each_window(d_, [&](std::int64_t n, const Window& window, std::int64_t c, std::int64_t out) {
      if (d_.kind == PoolKind::maximum) {
        sums[saved[out]] += widen(dy[out]);
        return;
      }
      for (std::int64_t h = window.top; h < window.bottom; ++h)
        for (std::int64_t w = window.left; w < window.right; ++w)
          sums[index_of(d_, n, h, w, c)] += widen(dy[out]) / window.count();
    });
    for (std::int64_t i = 0; i < elements(); ++i) static_cast<T*>(args.dx)[i] = narrow<T>(sums[i]);
  }

 private:
  std::int64_t elements() const { return d_.n * d_.h * d_.w * d_.c; }
};

}  // namespace

template <>
Made<PoolForward> make_reference(const PoolDesc& d) {
  return by_type<PoolForward, ReferencePoolForward>(d.dtype, d);
}

template <>
Made<PoolBackward> make_reference(const PoolDesc& d) {
  return by_type<PoolBackward, ReferencePoolBackward>(d.dtype, d);
}

}  // namespace assay::ops::reference
