// Winograd convolutions. Forward and the input's gradient: each thread carries a block of tiles through the input
// transform, the 16 products and the output transform while it stays in its second-level cache. The weights' gradient:
// all threads transform a block of tiles, then share the 16 positions' products, so that the order of sums does not
// depend on the number of threads.
#include "workloads/ops/cpu/cpu_ops.h"

#include "harness/core/clock.h"
#include "workloads/ops/conv.h"
#include "workloads/ops/cpu/kernels/winograd_kernels.h"
#include "workloads/ops/cpu/parallel.h"
#include "workloads/ops/round_up.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace assay::ops {

namespace {

// Padding of rows, in floats, so that rows do not map to the same cache set.
constexpr std::int64_t skew = 16;
constexpr std::int64_t tile_block_bytes = 1 << 20;      // of transformed tiles, per thread
constexpr std::int64_t min_tiles = 42;                  // per block, since each block reads all weights
constexpr std::int64_t gradient_block_bytes = 8 << 20;  // of transformed tiles, all threads together

std::int64_t half_up(std::int64_t value) { return (value + 1) / 2; }

const WinogradKernels& kernels() { return cpu::kernels<WinogradKernels>(); }

struct alignas(64) Line {
  Line() { values.fill(1); }
  std::array<float, 16> values;
};

template <typename Base>
class WinogradOp : public VectorOp<Base> {
 public:
  std::string implementation() const override { return "assay:winograd"; }
  std::string choice() const override { return choice_; }

  // Times both on arrays of ones: choice() says what this op gains. It is used even where it gains nothing, so that
  // all runs on a machine compute the same bits.
  void compare(const ConvDesc& d, const char* pass, Base& plain) {
    auto bytes = sizeof(float) * static_cast<std::size_t>(std::max(d.n * d.h * d.w * d.c, d.n * d.p() * d.q() * d.k));
    bytes = std::max(bytes, sizeof(float) * static_cast<std::size_t>(d.k * d.r * d.s * d.c));
    if constexpr (std::is_base_of_v<PackedWeights, Base>)
      bytes = std::max({bytes, this->packed_bytes(), plain.packed_bytes()});
    const auto lines = [](std::size_t size) { return std::vector<Line>(size / sizeof(Line) + 1); };
    std::vector<Line> a = lines(bytes), b = a, out = a;
    std::vector<Line> workspace = lines(std::max(this->workspace_bytes(), plain.workspace_bytes()));
    const auto fastest_of = [&](Base& op) {
      double fastest = std::numeric_limits<double>::max();
      InlineStream stream;
      for (int run = 0; run < 4; ++run) {  // the first makes pages and kernels
        const auto start = Clock::now();
        op.run(stream, {a.data(), b.data(), out.data(), workspace.data()});
        fastest = std::min(fastest, seconds_since(start));
      }
      return fastest;
    };
    const double own = fastest_of(*this);
    choice_ = fmt::format("winograd {} of {} x {} pixels, {} to {} channels: oneDNN takes {:.2f} times as long", pass,
                          d.h, d.w, d.c, d.k, fastest_of(plain) / own);
  }

 private:
  std::string choice_;
};

template <typename Own, typename Base>
std::unique_ptr<Base> compared(const ConvDesc& desc, const char* pass, Made<Base> plain) {
  auto op = std::make_unique<Own>(desc);
  if (plain) op->compare(desc, pass, *plain.take());
  return op;
}

// Images in, images out, stride 1.
struct Shape {
  std::int64_t n, h, w, in, p, q, out, padding;

  std::int64_t tiles_h() const { return half_up(p); }
  std::int64_t tiles_w() const { return half_up(q); }
  std::int64_t tiles() const { return n * tiles_h() * tiles_w(); }
  // Transformed tiles of the images in and out, `block` at a time, rows `stride` floats apart.
  WinogradTiles in_tiles(std::int64_t block, std::int64_t stride) const {
    return transformed({.h = h, .w = w, .channels = in, .origin = -padding}, block, stride);
  }
  WinogradTiles out_tiles(std::int64_t block, std::int64_t stride) const {
    return transformed({.h = p, .w = q, .channels = out}, block, stride);
  }
  WinogradTiles transformed(WinogradTiles images, std::int64_t block, std::int64_t stride) const {
    images.tiles_h = tiles_h();
    images.tiles_w = tiles_w();
    images.stride = stride;
    images.size = block * stride;
    return images;
  }
};
Shape shape_of(const ConvDesc& d) { return {d.n, d.h, d.w, d.c, d.p(), d.q(), d.k, d.padding}; }
// The gradient of the input is a convolution too: of dy, with padding 2 - padding, by the weights rotated 180 degrees.
Shape rotated_shape_of(const ConvDesc& d) { return {d.n, d.p(), d.q(), d.k, d.h, d.w, d.c, 2 - d.padding}; }

// images in to images out by transformed weights u (16, out / columns, in, columns).
class Convolution {
 public:
  explicit Convolution(const Shape& shape)
      : s_(shape),
        in_stride_(s_.in + skew),
        out_stride_(round_up(s_.out, kernels_.columns) + skew),
        parts_(parts_for(s_.tiles(), min_tiles)),
        block_(block_tiles()) {}

  std::size_t packed_bytes() const { return static_cast<std::size_t>(winograd_positions * position()) * sizeof(float); }
  // Floats of the transformed weights at one position.
  std::int64_t position() const { return round_up(s_.out, kernels_.columns) * s_.in + skew; }
  // A part's transformed tiles, then its products.
  std::size_t workspace_bytes() const { return static_cast<std::size_t>(parts_ * part_floats()) * sizeof(float); }

  void run(const void* from, const void* u, void* to, void* workspace) const {
    const WinogradTiles in = s_.in_tiles(block_, in_stride_), out = s_.out_tiles(block_, out_stride_);
    const std::int64_t columns = round_up(s_.out, kernels_.columns);
    for_parts(parts_, [&](int part) {
      float* tiles = static_cast<float*>(workspace) + part * part_floats();
      float* products = tiles + winograd_positions * in.size;
      const Part mine = part_of(s_.tiles(), 1, part, parts_);
      for (std::int64_t begin = mine.begin; begin < mine.end; begin += block_) {
        const std::int64_t end = std::min(mine.end, begin + block_);
        kernels_.input(in, static_cast<const float*>(from), begin, end, tiles);
        for (std::int64_t i = 0; i < winograd_positions; ++i)
          kernels_.product({.m = end - begin,
                            .n = columns,
                            .depth = s_.in,
                            .a = tiles + i * in.size,
                            .a_stride = in_stride_,
                            .b = static_cast<const float*>(u) + i * position(),
                            .b_stride = kernels_.columns,
                            .b_panel = s_.in * kernels_.columns,
                            .c = products + i * out.size,
                            .c_stride = out_stride_});
        kernels_.output(out, products, begin, end, static_cast<float*>(to));
      }
    });
  }

 private:
  std::int64_t block_tiles() const {
    const std::int64_t tile_bytes = winograd_positions * (in_stride_ + out_stride_) * std::int64_t{sizeof(float)};
    const std::int64_t max_block = std::max(tile_block_bytes / tile_bytes, min_tiles);
    const std::int64_t each = (s_.tiles() + parts_ - 1) / parts_;
    const std::int64_t blocks = (each + max_block - 1) / max_block;
    return std::min(each, round_up((each + blocks - 1) / blocks, kernels_.rows));
  }
  std::int64_t part_floats() const { return winograd_positions * block_ * (in_stride_ + out_stride_); }

  Shape s_;
  const WinogradKernels& kernels_ = kernels();
  std::int64_t in_stride_;
  std::int64_t out_stride_;
  int parts_;
  std::int64_t block_;
};

// Calls fn(first channel, last) for parts of the channels, at multiples of the kernels' panel width.
template <typename Fn>
void over_channels(std::int64_t channels, const Fn& fn) {
  for_ranges(channels, kernels().columns, parts_for(channels, kernels().columns), fn);
}

// An op that is a convolution of its images by packed weights.
template <typename Base>
class WinogradConvolution : public WinogradOp<Base> {
 public:
  std::size_t packed_bytes() const override { return convolution_.packed_bytes(); }
  std::size_t workspace_bytes() const override { return convolution_.workspace_bytes(); }

 protected:
  WinogradConvolution(const ConvDesc& desc, const Shape& shape) : d_(desc), convolution_(shape) {}

  ConvDesc d_;
  Convolution convolution_;
};

class WinogradForward final : public WinogradConvolution<ConvForward> {
 public:
  explicit WinogradForward(const ConvDesc& desc) : WinogradConvolution(desc, shape_of(desc)) {}

  void pack(Stream&, const void* w, void* packed) override {
    over_channels(d_.k, [&](std::int64_t begin, std::int64_t end) {
      kernels().weights(static_cast<const float*>(w), d_.c, begin, end, static_cast<float*>(packed),
                        convolution_.position());
    });
  }
  void run(Stream&, const Args& args) override { convolution_.run(args.x, args.packed, args.y, args.workspace); }
};

class WinogradBackwardData final : public WinogradConvolution<ConvBackwardData> {
 public:
  explicit WinogradBackwardData(const ConvDesc& desc) : WinogradConvolution(desc, rotated_shape_of(desc)) {}

  void pack(Stream&, const void* w, void* packed) override {
    over_channels(d_.c, [&](std::int64_t begin, std::int64_t end) {
      kernels().rotated_weights(static_cast<const float*>(w), d_.k, d_.c, begin, end, static_cast<float*>(packed),
                                convolution_.position());
    });
  }
  void run(Stream&, const Args& args) override { convolution_.run(args.dy, args.packed, args.dx, args.workspace); }
};

class WinogradBackwardWeights final : public WinogradOp<ConvBackwardWeights> {
 public:
  explicit WinogradBackwardWeights(const ConvDesc& desc)
      : d_(desc),
        s_(shape_of(desc)),
        in_stride_(round_up(s_.in, kernels_.columns) + skew),
        out_stride_(s_.out + skew),
        sums_stride_(round_up(s_.in, kernels_.columns)),
        parts_(parts_for(s_.tiles(), min_tiles)) {
    const std::int64_t tile_bytes = winograd_positions * (in_stride_ + out_stride_) * std::int64_t{sizeof(float)};
    const std::int64_t max_block = std::max(gradient_block_bytes / tile_bytes, min_tiles);
    const std::int64_t blocks = (s_.tiles() + max_block - 1) / max_block;
    block_ = (s_.tiles() + blocks - 1) / blocks;
  }

  // Transformed tiles of x, of dy, then the transformed gradient.
  std::size_t workspace_bytes() const override {
    const std::int64_t tiles = block_ * (in_stride_ + out_stride_);
    return static_cast<std::size_t>(winograd_positions * (tiles + s_.out * sums_stride_)) * sizeof(float);
  }

  void run(Stream&, const Args& args) override {
    const WinogradTiles in = s_.in_tiles(block_, in_stride_), out = s_.out_tiles(block_, out_stride_);
    auto* x = static_cast<float*>(args.workspace);
    float* dy = x + winograd_positions * in.size;
    float* sums = dy + winograd_positions * out.size;
    for (std::int64_t begin = 0; begin < s_.tiles(); begin += block_) {
      const std::int64_t count = std::min(s_.tiles() - begin, block_);
      for_parts(parts_, [&](int part) {
        const Part mine = part_of(count, 1, part, parts_);
        const std::int64_t first = begin + mine.begin, last = begin + mine.end;
        kernels_.input(in, static_cast<const float*>(args.x), first, last, x + mine.begin * in_stride_);
        kernels_.gradient(out, static_cast<const float*>(args.dy), first, last, dy + mine.begin * out_stride_);
      });
      multiply(count, x, in.size, dy, out.size, sums, begin > 0);
    }
    for_ranges(s_.out, 1, parts_for(s_.out, 1), [&](std::int64_t begin, std::int64_t end) {
      kernels_.weights_gradient(sums, s_.out, s_.in, sums_stride_, begin, end, static_cast<float*>(args.dw),
                                d_.accumulate);
    });
  }

 private:
  // sums (16, out, in) = or += dy^T x at each position, split into whole bands of output channels.
  void multiply(std::int64_t tiles, const float* x, std::int64_t x_size, const float* dy, std::int64_t dy_size,
                float* sums, bool add) const {
    const std::int64_t bands = (s_.out + kernels_.rows - 1) / kernels_.rows, all = winograd_positions * bands;
    for_ranges(all, 1, parts_for(all, 1), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end;) {
        const std::int64_t i = at / bands, next = std::min(end, (i + 1) * bands);
        const std::int64_t first = at % bands * kernels_.rows;
        const std::int64_t last = std::min(s_.out, (next - i * bands) * kernels_.rows);
        kernels_.product({.m = last - first,
                          .n = sums_stride_,
                          .depth = tiles,
                          .a = dy + i * dy_size + first,
                          .a_stride = out_stride_,
                          .a_by_rows = false,
                          .b = x + i * x_size,
                          .b_stride = in_stride_,
                          .b_panel = kernels_.columns,
                          .c = sums + (i * s_.out + first) * sums_stride_,
                          .c_stride = sums_stride_,
                          .add = add});
        at = next;
      }
    });
  }

  ConvDesc d_;
  Shape s_;
  const WinogradKernels& kernels_ = kernels();
  std::int64_t in_stride_;
  std::int64_t out_stride_;
  std::int64_t sums_stride_;
  int parts_;
  std::int64_t block_;
};

}  // namespace

std::unique_ptr<ConvForward> make_winograd_forward(const ConvDesc& desc, Made<ConvForward> plain) {
  return compared<WinogradForward>(desc, "forward", std::move(plain));
}
std::unique_ptr<ConvBackwardData> make_winograd_backward_data(const ConvDesc& desc, Made<ConvBackwardData> plain) {
  return compared<WinogradBackwardData>(desc, "gradient of the input", std::move(plain));
}
std::unique_ptr<ConvBackwardWeights> make_winograd_backward_weights(const ConvDesc& desc,
                                                                    Made<ConvBackwardWeights> plain) {
  return compared<WinogradBackwardWeights>(desc, "gradient of the weights", std::move(plain));
}

}  // namespace assay::ops
