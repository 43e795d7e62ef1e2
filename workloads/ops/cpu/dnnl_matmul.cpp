// oneDNN's matmul and inner-product primitives behind the Matmul op. oneDNN does bias and accumulation; GELU, which
// stores two results, runs over blocks of rows while they are in the caches.
#include "workloads/ops/cpu/cpu_ops.h"

#include "workloads/ops/cpu/dnnl_common.h"
#include "workloads/ops/cpu/dnnl_made.h"
#include "workloads/ops/cpu/dnnl_product.h"
#include "workloads/ops/cpu/parallel.h"
#include "workloads/ops/cpu/weight_pack.h"

#include <algorithm>

namespace assay::ops {

namespace {

using dnnl::memory;

// A primitive ready to run.
struct Built {
  DnnlCall call;   // a, b, out, bias if there is one
  memory::desc b;  // in the primitive's layout
};

// The caller's b, of `type`, with its dimensions in the primitive's order.
memory::desc canonical_b(const MatmulDesc& d, DType type) {
  if (d.form == WeightForm::inner_product)  // (N, K)
    return memory::desc({d.n, d.k}, dnnl_type(type), d.transpose_b ? memory::dims{d.k, 1} : memory::dims{1, d.n});
  return memory::desc({d.k, d.n}, dnnl_type(type), d.transpose_b ? memory::dims{1, d.k} : memory::dims{d.n, 1});
}

template <typename Primitive>
Built built_from(const typename Primitive::primitive_desc& pd, bool bias) {
  std::vector<DnnlCall::Binding> bindings{
      {DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}};
  if (bias) bindings.emplace_back(DNNL_ARG_BIAS, pd.bias_desc());
  return {dnnl_call<Primitive>(pd, std::move(bindings)), pd.weights_desc()};
}

// The product for `rows` of the d.m rows, with output of `out_type`; b's layout is `given`, else follows from d.form.
Built build(const MatmulDesc& d, std::int64_t rows, DType out_type, const std::optional<memory::desc>& given = {}) {
  const memory::desc a({rows, d.k}, dnnl_type(d.a), d.transpose_a ? memory::dims{1, d.m} : memory::dims{d.k, 1});
  const memory::desc out = dnnl_matrix(rows, d.n, out_type);
  const dnnl::primitive_attr attr = dnnl_attributes(d.accumulate);
  if (d.form == WeightForm::inner_product) {
    const memory::desc b = given.value_or(memory::desc({d.n, d.k}, dnnl_type(d.b), memory::format_tag::any));
    const memory::desc bias({d.n}, dnnl_type(d.bias_type), memory::format_tag::a);
    const auto kind = dnnl::prop_kind::forward_inference;
    using Primitive = dnnl::inner_product_forward;
    if (d.bias) return built_from<Primitive>({dnnl_engine(), kind, a, b, bias, out, attr}, true);
    return built_from<Primitive>({dnnl_engine(), kind, a, b, out, attr}, false);
  }
  const memory::desc any({d.k, d.n}, dnnl_type(d.b), memory::format_tag::any);
  const memory::desc b = given.value_or(d.form == WeightForm::plain ? canonical_b(d, d.b) : any);
  if (d.bias) {
    const memory::desc bias({1, d.n}, dnnl_type(d.bias_type), memory::format_tag::ab);
    return built_from<dnnl::matmul>({dnnl_engine(), a, b, bias, out, attr}, true);
  }
  return built_from<dnnl::matmul>({dnnl_engine(), a, b, out, attr}, false);
}

// oneDNN's JIT GEMM, which serves f32 without AVX-512, packs b in every call.
bool packs_in_every_call(const MatmulDesc& d, const Built& built) {
  return d.a == DType::f32 && built.call.implementation().starts_with("gemm:jit");
}

// The product of all rows; b is used as it is stored if packing it in advance gains nothing.
Built build_whole(const MatmulDesc& d, DType out_type) {
  Built built = build(d, d.m, out_type);
  if (d.form != WeightForm::packed || d.pack_from != d.b || !packs_in_every_call(d, built)) return built;
  Built direct = build(d, d.m, out_type, canonical_b(d, d.b));
  return packs_in_every_call(d, direct) ? std::move(direct) : std::move(built);
}

// Packing, common to all products.
class Product : public DnnlProduct {
 public:
  Product(const MatmulDesc& desc, const std::string& implementation, const memory::desc& b)
      : DnnlProduct(desc, implementation) {
    const memory::desc from = canonical_b(desc, desc.pack_from);
    if (desc.form != WeightForm::plain && b != from) {
      packed_bytes_ = b.get_size();
      pack_.emplace(from, b);
    }
  }

  std::size_t packed_bytes() const override { return packed_bytes_; }
  bool saturates_pairs() const override { return d_.a == DType::u8 && saturates_int8(isa()); }
  void pack(Stream&, const void* b, void* packed) override {
    if (pack_) pack_->run(b, packed);
  }

 private:
  std::size_t packed_bytes_ = 0;
  std::optional<WeightPack> pack_;
};

class WholeProduct final : public Product {
 public:
  WholeProduct(const MatmulDesc& desc, Built built)
      : Product(desc, built.call.implementation(), built.b), call_(std::move(built.call)) {}

  std::size_t workspace_bytes() const override { return call_.scratch_bytes(); }

  void run(Stream&, const MatmulArgs& args) override {
    if (d_.bias)
      call_.run({args.a, args.b, args.out, args.bias, args.workspace});
    else
      call_.run({args.a, args.b, args.out, args.workspace});
    sum_rows(args);
  }

 private:
  DnnlCall call_;
};

// Followed by GELU or its gradient: a block of rows is multiplied into f32, then the threads share the elementwise
// part.
class GeluProduct final : public Product {
 public:
  // About the size of a few cores' second-level caches; smaller blocks would do too little work per pass over b.
  static constexpr std::int64_t block_bytes = 3 << 20;

  GeluProduct(const MatmulDesc& desc, std::int64_t rows, Built built, std::optional<DnnlCall> rest)
      : Product(desc, built.call.implementation(), built.b),
        rows_(rows),
        call_(std::move(built.call)),
        rest_(std::move(rest)),
        element_(size_of(desc.out)),
        parts_(parts_for(rows * desc.n, 4096)),
        gelu_(gelu_kernel(desc)),
        gradient_(gelu_gradient_kernel(desc)) {}

  static std::int64_t block_rows(const MatmulDesc& d) {
    return std::clamp<std::int64_t>(block_bytes / (d.n * 4) / 64 * 64, 64, std::max<std::int64_t>(64, d.m));
  }

  std::size_t workspace_bytes() const override {
    const std::size_t scratch = std::max(call_.scratch_bytes(), rest_ ? rest_->scratch_bytes() : 0);
    return staged_bytes() + scratch;
  }

  void run(Stream&, const MatmulArgs& args) override {
    auto* scratch = static_cast<char*>(args.workspace) + staged_bytes();
    const std::size_t a_row = (d_.transpose_a ? 1 : static_cast<std::size_t>(d_.k)) * size_of(d_.a);
    for (std::int64_t row = 0; row < d_.m; row += rows_) {
      const std::int64_t count = std::min(rows_, d_.m - row) * d_.n;
      const std::size_t skip = static_cast<std::size_t>(row * d_.n) * element_;
      const char* a = static_cast<const char*>(args.a) + static_cast<std::size_t>(row) * a_row;
      char* out = static_cast<char*>(args.out) + skip;
      char* aux = static_cast<char*>(args.aux) + skip;
      // f32 results need no staging: z goes to aux, a gradient to out.
      char* z = d_.out != DType::f32 ? static_cast<char*>(args.workspace) : gelu_ ? aux : out;
      DnnlCall& call = rest_ && row + rows_ > d_.m ? *rest_ : call_;
      if (d_.bias)
        call.run({a, args.b, z, args.bias, scratch});
      else
        call.run({a, args.b, z, scratch});
      for_ranges(count, 1024, parts_, [&](std::int64_t begin, std::int64_t end) {
        const std::size_t at = static_cast<std::size_t>(begin);
        const auto* from = reinterpret_cast<const float*>(z) + at;
        if (gelu_)
          gelu_(from, aux + at * element_, out + at * element_, end - begin);
        else
          gradient_(from, aux + at * element_, out + at * element_, end - begin);
      });
    }
    sum_rows(args);
  }

 private:
  std::size_t staged_bytes() const {
    return d_.out == DType::f32 ? 0 : (static_cast<std::size_t>(rows_ * d_.n) * sizeof(float) + 63) / 64 * 64;
  }

  std::int64_t rows_;
  DnnlCall call_;
  std::optional<DnnlCall> rest_;  // for the last block, if it has fewer rows
  std::size_t element_;
  int parts_;
  ProductKernels::Gelu gelu_;
  ProductKernels::GeluGradient gradient_;
};

std::unique_ptr<Matmul> make_gelu(const MatmulDesc& d) {
  Built built = build_whole(d, DType::f32);
  // A GEMM that packs b in every call packs it once for all rows. (For blocks of few rows oneDNN 3.2 would not pack it,
  // and take twice as long.) If out has another type, all rows would need too large a staging area.
  if (d.out == DType::f32 && packs_in_every_call(d, built))
    return std::make_unique<GeluProduct>(d, d.m, std::move(built), std::nullopt);
  const std::int64_t rows = std::min(d.m, GeluProduct::block_rows(d));
  built = build(d, rows, DType::f32);
  std::optional<DnnlCall> rest;
  if (d.m % rows != 0) rest = build(d, d.m % rows, DType::f32, built.b).call;
  return std::make_unique<GeluProduct>(d, rows, std::move(built), std::move(rest));
}

}  // namespace

Made<Matmul> make_dnnl_matmul(const MatmulDesc& d) {
  if (d.form == WeightForm::inner_product && d.transpose_a)
    return Made<Matmul>::no("an inner product cannot transpose its first operand");
  if (is_weight_gradient(d))
    if (auto made = make_dnnl_weight_gradient(d)) return made;
  const std::string what = fmt::format("{} x {} into {}", name_of(d.a), name_of(d.b), name_of(d.out));
  return made_by_dnnl<Matmul>(what, [&]() -> std::unique_ptr<Matmul> {
    if (d.epilogue != Epilogue::none) return make_gelu(d);
    return std::make_unique<WholeProduct>(d, build_whole(d, d.out));
  });
}

}  // namespace assay::ops
