// The weights' gradient, dw[k][tap][c] = sum over output pixels of dy[pixel][k] x[pixel under the tap][c]: a matrix
// product whose operands are packed one block of pixels at a time. Threads form a grid of pixels by output channels;
// partial sums are added in a fixed order.
#include "workloads/ops/cpu/cpu_ops.h"

#include "workloads/ops/cpu/dnnl_common.h"
#include "workloads/ops/cpu/kernels/conv_gradient_kernels.h"
#include "workloads/ops/cpu/parallel.h"
#include "workloads/ops/round_up.h"

#include <algorithm>
#include <cstring>

namespace assay::ops {

namespace {

constexpr std::int64_t a_bytes = 512 << 10;        // of a block's packed dy, to fit the second-level cache
constexpr std::int64_t min_pixels = 128;           // per block
constexpr std::int64_t max_pixels = 1024;          // per block, so that one panel of x fits that cache too
constexpr std::int64_t private_bytes = 512 << 10;  // largest gradient of which every thread gets its own copy
constexpr std::int64_t few_channels = 16;          // below this a row of x is a whole window, not one tap

class PackedGradient final : public VectorOp<ConvBackwardWeights> {
 public:
  explicit PackedGradient(const ConvDesc& desc)
      : d_(desc),
        typed_(d_.dtype == DType::f32 ? kernels_.f32 : kernels_.bf16),
        size_(static_cast<std::int64_t>(size_of(d_.dtype))),
        gathered_(d_.c < few_channels),
        taps_(gathered_ ? 1 : d_.r * d_.s),
        columns_(gathered_ ? d_.r * d_.s * d_.c : d_.c),
        row_(round_up(columns_, kernels_.width)),
        pixels_(d_.n * d_.p() * d_.q()) {
    const int threads = parts_for(pixels_, min_pixels);
    const bool private_sums = d_.k * taps_ * row_ * std::int64_t{sizeof(float)} <= private_bytes;
    const std::int64_t bands = (d_.k + kernels_.height - 1) / kernels_.height;
    // The fewest parts of the pixels that leave each thread at least two bands.
    parts_pixels_ = private_sums ? threads : 1;
    while (parts_pixels_ < threads && threads / parts_pixels_ > bands / 2) ++parts_pixels_;
    parts_k_ = threads / parts_pixels_;
    direct_ = parts_pixels_ == 1 && row_ == columns_;
    band_ = round_up((d_.k + parts_k_ - 1) / parts_k_, kernels_.height);
    const std::int64_t part = (pixels_ + parts_pixels_ - 1) / parts_pixels_;
    const std::int64_t max_block = std::clamp(a_bytes / (band_ * size_), min_pixels, max_pixels);
    const std::int64_t blocks = (part + max_block - 1) / max_block;
    block_ = round_up((part + blocks - 1) / blocks, 2);
  }

  std::string implementation() const override { return "assay:packed_gradient"; }
  std::size_t workspace_bytes() const override {
    const std::int64_t sums = direct_ ? 0 : parts_pixels_ * sums_floats() * std::int64_t{sizeof(float)};
    return static_cast<std::size_t>(sums + parts_pixels_ * parts_k_ * part_bytes());
  }

  void run(Stream&, const Args& args) override {
    auto* sums = static_cast<float*>(args.workspace);
    char* parts = static_cast<char*>(args.workspace) +
                  (direct_ ? 0 : parts_pixels_ * sums_floats() * std::int64_t{sizeof(float)});
    for_parts(parts_pixels_ * parts_k_, [&](int part) {
      const int of_pixels = part / parts_k_;
      run_part(args, part_of(pixels_, 2, of_pixels, parts_pixels_),
               part_of(d_.k, kernels_.height, part % parts_k_, parts_k_),
               direct_ ? static_cast<float*>(args.dw) : sums + of_pixels * sums_floats(), parts + part * part_bytes());
    });
    if (direct_) return;
    const std::int64_t rows = d_.k * taps_;
    for_ranges(rows, 1, parts_for(rows * columns_, 4096), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        kernels_.sum(sums + i * row_, parts_pixels_, sums_floats(), columns_,
                     static_cast<float*>(args.dw) + i * columns_, d_.accumulate);
    });
  }

 private:
  // (K, taps, row)
  std::int64_t sums_floats() const { return d_.k * taps_ * row_; }
  // A part's scratch: packed dy, one panel of packed x, row addresses, gathered windows.
  std::int64_t a_part() const { return round_up(block_ * band_ * size_, 64); }
  std::int64_t b_part() const { return round_up(block_ * kernels_.width * size_, 64); }
  std::int64_t rows_part() const { return round_up(block_ * std::int64_t{sizeof(void*)}, 64); }
  std::int64_t windows_part() const { return gathered_ ? round_up(block_ * columns_ * size_, 64) : 0; }
  std::int64_t part_bytes() const { return a_part() + b_part() + rows_part() + windows_part(); }

  void run_part(const Args& args, Part pixels, Part channels, float* dw, char* workspace) const {
    void* a = workspace;
    void* b = workspace + a_part();
    auto** rows = reinterpret_cast<const void**>(workspace + a_part() + b_part());
    char* windows = workspace + a_part() + b_part() + rows_part();
    for (std::int64_t begin = pixels.begin; begin < pixels.end; begin += block_) {
      const std::int64_t count = std::min(pixels.end - begin, block_);
      typed_.pack_a(static_cast<const char*>(args.dy) + (begin * d_.k + channels.begin) * size_, count, d_.k,
                    channels.end - channels.begin, a);
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        if (gathered_)
          gather_windows(static_cast<const char*>(args.x), begin, count, windows, rows);
        else
          find_rows(static_cast<const char*>(args.x), begin, count, tap, rows);
        for (std::int64_t first = 0; first < columns_; first += kernels_.width) {
          typed_.pack_b(rows, count, first, std::min(columns_ - first, kernels_.width), b);
          typed_.product({.m = channels.end - channels.begin,
                          .depth = count,
                          .a = a,
                          .b = b,
                          .c = dw + (channels.begin * taps_ + tap) * row_ + first,
                          .c_stride = taps_ * row_,
                          .add = begin > pixels.begin || (direct_ && d_.accumulate)});
        }
      }
    }
  }

  // Calls visit(t, image, row, column) with the first pixel of x in the window of output pixel begin + t.
  template <typename Visit>
  void for_each_window(std::int64_t begin, std::int64_t count, const Visit& visit) const {
    const std::int64_t q = d_.q(), each = d_.p() * q;
    std::int64_t image = begin / each, row = begin % each / q, column = begin % q;
    for (std::int64_t t = 0; t < count; ++t) {
      visit(t, image, row * d_.stride - d_.padding, column * d_.stride - d_.padding);
      if (++column < q) continue;
      column = 0;
      if (++row < d_.p()) continue;
      row = 0;
      ++image;
    }
  }

  // The addresses of the pixels under one tap; null outside the image.
  void find_rows(const char* x, std::int64_t begin, std::int64_t count, std::int64_t tap, const void** rows) const {
    const std::int64_t r = tap / d_.s, s = tap % d_.s;
    for_each_window(begin, count, [&](std::int64_t t, std::int64_t image, std::int64_t top, std::int64_t left) {
      const std::int64_t h = top + r, w = left + s;
      const bool inside = h >= 0 && h < d_.h && w >= 0 && w < d_.w;
      rows[t] = inside ? x + ((image * d_.h + h) * d_.w + w) * d_.c * size_ : nullptr;
    });
  }

  // Copies whole windows (r, s, c), with zeros outside the image.
  void gather_windows(const char* x, std::int64_t begin, std::int64_t count, char* windows, const void** rows) const {
    const std::int64_t pixel = d_.c * size_, line = d_.s * pixel;
    for_each_window(begin, count, [&](std::int64_t t, std::int64_t image, std::int64_t top, std::int64_t left) {
      char* to = windows + t * columns_ * size_;
      rows[t] = to;
      const std::int64_t first = std::clamp<std::int64_t>(-left, 0, d_.s);
      const std::int64_t last = std::clamp<std::int64_t>(d_.w - left, first, d_.s);
      for (std::int64_t r = 0; r < d_.r; ++r, to += line) {
        const std::int64_t h = top + r;
        const bool inside = h >= 0 && h < d_.h;
        if (!inside || last - first < d_.s) std::memset(to, 0, static_cast<std::size_t>(line));
        if (!inside || first == last) continue;
        std::memcpy(to + first * pixel, x + ((image * d_.h + h) * d_.w + left + first) * pixel,
                    static_cast<std::size_t>((last - first) * pixel));
      }
    });
  }

  ConvDesc d_;
  const ConvGradientKernels& kernels_ = cpu::kernels<ConvGradientKernels>();
  const ConvGradientKernels::Typed& typed_;
  std::int64_t size_;
  bool gathered_;
  std::int64_t taps_;
  std::int64_t columns_;  // of one tap's gradient
  std::int64_t row_;      // columns_ rounded up to whole panels
  std::int64_t pixels_;
  int parts_k_ = 1;
  int parts_pixels_ = 1;
  bool direct_ = false;  // sums go directly to dw
  std::int64_t band_ = 0;
  std::int64_t block_ = 0;
};

}  // namespace

bool packed_gradient_supports(const ConvDesc& d) {
  return d.groups == 1 && d.gradient == DType::f32 && (d.dtype == DType::f32 || d.dtype == DType::bf16);
}

bool packed_gradient_suits(const ConvDesc& d) {
  const cpu::Isa isa = cpu::best_isa();
  if (d.dtype == DType::f32) return isa >= cpu::Isa::avx2 && d.c >= few_channels;
  // AMX tiles in oneDNN beat pairs of bf16 here; without either there is little difference.
  const auto tiles = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  const bool has_tiles = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & tiles) == tiles;
  return d.dtype == DType::bf16 && isa == cpu::Isa::avx512_bf16 && !has_tiles;
}

std::unique_ptr<ConvBackwardWeights> make_packed_gradient(const ConvDesc& desc) {
  return std::make_unique<PackedGradient>(desc);
}

}  // namespace assay::ops
