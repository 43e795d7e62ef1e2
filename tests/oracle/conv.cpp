// The oracle's convolution of NHWC images: each output gathers its sum over the window; nothing is scattered.
#include "tests/oracle/reference_op.h"

namespace assay::ops::reference {

namespace {

// Indices of elements in the three arrays.
struct Layout {
  explicit Layout(const ConvDesc& desc) : d(desc) {}

  std::int64_t x(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) const {
    return ((n * d.h + h) * d.w + w) * d.c + c;
  }
  std::int64_t y(std::int64_t n, std::int64_t p, std::int64_t q, std::int64_t k) const {
    return ((n * rows + p) * columns + q) * d.k + k;
  }
  std::int64_t w(std::int64_t k, std::int64_t r, std::int64_t s, std::int64_t c) const {
    return ((k * d.r + r) * d.s + s) * group_c + c;
  }
  std::int64_t weights() const { return d.k * d.r * d.s * group_c; }

  ConvDesc d;
  std::int64_t rows = d.p();
  std::int64_t columns = d.q();
  std::int64_t group_c = d.c / d.groups;  // input channels of one group
  std::int64_t group_k = d.k / d.groups;  // output channels of one group
};

template <typename T, typename Interface>
class Packing : public ReferenceOp<Interface> {
 public:
  using ReferenceOp<Interface>::ReferenceOp;
  std::size_t packed_bytes() const override { return static_cast<std::size_t>(at.weights()) * sizeof(T); }
  void pack(Stream&, const void* w, void* packed) override {
    const Array from(w, at.d.pack_from);
    for (std::int64_t i = 0; i < at.weights(); ++i) static_cast<T*>(packed)[i] = narrow<T>(from[i]);
  }

 protected:
  Layout at{this->d_};
};

template <typename T>
class ReferenceConvForward final : public Packing<T, ConvForward> {
 public:
  using Packing<T, ConvForward>::Packing;
  using Packing<T, ConvForward>::at;

  void run(Stream&, const ConvForward::Args& args) override {
    const ConvDesc& d = at.d;
    const auto* x = static_cast<const T*>(args.x);
    const auto* weights = static_cast<const T*>(args.packed);
    auto* y = static_cast<T*>(args.y);
    for (std::int64_t n = 0; n < d.n; ++n)
      for (std::int64_t p = 0; p < at.rows; ++p)
        for (std::int64_t q = 0; q < at.columns; ++q)
          for (std::int64_t k = 0; k < d.k; ++k) {
            const std::int64_t first = k / at.group_k * at.group_c;
            double sum = 0;
            for (std::int64_t r = 0; r < d.r; ++r)
              for (std::int64_t s = 0; s < d.s; ++s) {
                const std::int64_t h = p * d.stride + r - d.padding, w = q * d.stride + s - d.padding;
                if (h < 0 || h >= d.h || w < 0 || w >= d.w) continue;
                for (std::int64_t c = 0; c < at.group_c; ++c)
                  sum += widen(x[at.x(n, h, w, first + c)]) * widen(weights[at.w(k, r, s, c)]);
              }
            y[at.y(n, p, q, k)] = narrow<T>(sum);
          }
  }
};

template <typename T>
class ReferenceConvBackwardData final : public Packing<T, ConvBackwardData> {
 public:
  using Packing<T, ConvBackwardData>::Packing;
  using Packing<T, ConvBackwardData>::at;

  void run(Stream&, const ConvBackwardData::Args& args) override {
    const ConvDesc& d = at.d;
    const auto* dy = static_cast<const T*>(args.dy);
    const auto* weights = static_cast<const T*>(args.packed);
    auto* dx = static_cast<T*>(args.dx);
    for (std::int64_t n = 0; n < d.n; ++n)
      for (std::int64_t h = 0; h < d.h; ++h)
        for (std::int64_t w = 0; w < d.w; ++w)
          for (std::int64_t c = 0; c < d.c; ++c) {
            const std::int64_t first = c / at.group_c * at.group_k;
            double sum = 0;
            for (std::int64_t r = 0; r < d.r; ++r)
              for (std::int64_t s = 0; s < d.s; ++s) {
                const std::int64_t top = h + d.padding - r, left = w + d.padding - s;
                if (top < 0 || left < 0 || top % d.stride != 0 || left % d.stride != 0) continue;
                const std::int64_t p = top / d.stride, q = left / d.stride;
                if (p >= at.rows || q >= at.columns) continue;
                for (std::int64_t k = first; k < first + at.group_k; ++k)
                  sum += widen(dy[at.y(n, p, q, k)]) * widen(weights[at.w(k, r, s, c % at.group_c)]);
              }
            dx[at.x(n, h, w, c)] = narrow<T>(sum);
          }
  }
};

template <typename T>
class ReferenceConvBackwardWeights final : public ReferenceOp<ConvBackwardWeights> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    const ConvDesc& d = at.d;
    const auto* x = static_cast<const T*>(args.x);
    const auto* dy = static_cast<const T*>(args.dy);
    const Array dw(args.dw, d.gradient);
    for (std::int64_t k = 0; k < d.k; ++k)
      for (std::int64_t r = 0; r < d.r; ++r)
        for (std::int64_t s = 0; s < d.s; ++s)
          for (std::int64_t c = 0; c < at.group_c; ++c) {
            const std::int64_t channel = k / at.group_k * at.group_c + c;
            double sum = 0;
            for (std::int64_t n = 0; n < d.n; ++n)
              for (std::int64_t p = 0; p < at.rows; ++p)
                for (std::int64_t q = 0; q < at.columns; ++q) {
                  const std::int64_t h = p * d.stride + r - d.padding, w = q * d.stride + s - d.padding;
                  if (h < 0 || h >= d.h || w < 0 || w >= d.w) continue;
                  sum += widen(x[at.x(n, h, w, channel)]) * widen(dy[at.y(n, p, q, k)]);
                }
            dw.put(at.w(k, r, s, c), sum, d.accumulate);
          }
  }

 private:
  Layout at{d_};
};

}  // namespace

template <>
Made<ConvForward> make_reference(const ConvDesc& d) {
  return by_type<ConvForward, ReferenceConvForward>(d.dtype, d);
}

template <>
Made<ConvBackwardData> make_reference(const ConvDesc& d) {
  return by_type<ConvBackwardData, ReferenceConvBackwardData>(d.dtype, d);
}

template <>
Made<ConvBackwardWeights> make_reference(const ConvDesc& d) {
  return by_type<ConvBackwardWeights, ReferenceConvBackwardWeights>(d.dtype, d);
}

}  // namespace assay::ops::reference
