// The matmul op of NVIDIA GPUs: cuBLASLt with what it can fuse, our own kernels for the rest.
#include "workloads/ops/matmul.h"

#include "harness/core/error.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/blaslt.h"
#include "workloads/ops/cuda/blaslt_search.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/known_choices.h"
#include "workloads/ops/cuda/matmul_kernels.h"
#include "workloads/ops/cuda/trial.h"
#include "workloads/ops/descriptors.h"
#include "workloads/ops/round_up.h"

#include <algorithm>
#include <vector>

namespace assay::ops {

namespace {

std::size_t bytes_of(std::int64_t count, DType dtype) { return static_cast<std::size_t>(count) * size_of(dtype); }

bool is_fp8(DType dtype) { return dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2; }
bool is_gradient(Epilogue e) { return e == Epilogue::gelu_tanh_gradient || e == Epilogue::gelu_erf_gradient; }
bool is_erf(Epilogue e) { return e == Epilogue::gelu_erf || e == Epilogue::gelu_erf_gradient; }

// The library's product and what our own kernels add to it.
struct Parts {
  std::unique_ptr<BlasPlan> plan;
  bool bias = false;                           // added by a kernel
  bool gelu = false;                           // GELU or its gradient by the activation op
  std::unique_ptr<ActivationForward> forward;  // when gelu
  std::unique_ptr<ActivationBackward> backward;
  std::string choice;  // how the algorithm was chosen
};

class CudaMatmul final : public Matmul {
 public:
  CudaMatmul(const Device& device, const MatmulDesc& desc, Parts parts, bool copies_a, bool copies_b)
      : d_(desc),
        parts_(std::move(parts)),
        architecture_(device.info().compute_capability),
        copies_a_(copies_a),
        copies_b_(copies_b) {
    if (d_.row_sums && !parts_.plan->product().sums) row_sums_.emplace(d_.a, d_.transpose_a, d_.m, d_.k, d_.a_row());
    casts_bias_ = d_.bias && storage_type(d_.bias_type) != storage_type(d_.out);
    const std::size_t blas = aligned_size(parts_.plan->workspace_bytes());
    a_at_ = blas;
    b_at_ = a_at_ + (copies_a_ ? aligned_size(bytes_of(d_.m * d_.k, d_.a)) : 0);
    bias_at_ = b_at_ + (copies_b_ ? aligned_size(bytes_of(d_.k * d_.n, d_.b)) : 0);
    rest_at_ = bias_at_ + (casts_bias_ ? aligned_size(bytes_of(d_.n, d_.out)) : 0);
    std::size_t rest = row_sums_ ? row_sums_->workspace_bytes() : 0;
    if (parts_.forward) rest = std::max(rest, parts_.forward->workspace_bytes());
    if (parts_.backward) rest = std::max(rest, parts_.backward->workspace_bytes());
    workspace_bytes_ = rest_at_ + rest;
  }

  std::string implementation() const override { return "cublasLt"; }
  // The algorithm, how it was found, and what our own kernels add.
  std::string choice() const override {
    std::string text = fmt::format("{} ({})", parts_.plan->algorithm(), parts_.choice);
    if (copies_a_ || copies_b_) text += " + transposed copies";
    if (parts_.bias) text += " + bias";
    if (parts_.gelu) text += " + GELU";
    if (d_.row_sums) text += row_sums_ ? " + row sums" : " with row sums";
    return text;
  }
  std::string isa() const override { return fmt::format("sm_{}", architecture_); }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  // Only 8-bit operands have another layout: with the terms of a sum contiguous.
  std::size_t packed_bytes() const override { return d_.form == WeightForm::packed ? bytes_of(d_.k * d_.n, d_.b) : 0; }
  void pack(Stream& stream, const void* b, void* packed) override {
    transpose_bytes(b, packed, d_.k, d_.n, d_.n, cuda::native(stream));
  }

  void run(Stream& to, const MatmulArgs& args) override {
    const cudaStream_t stream = cuda::native(to);
    auto* workspace = static_cast<char*>(args.workspace);
    BlasArgs blas{.a = args.a,
                  .b = args.b,
                  .out = parts_.gelu && !is_gradient(d_.epilogue) ? args.aux : args.out,
                  .workspace = workspace,
                  .bias = args.bias,
                  .aux = args.aux,
                  .sums = args.row_sums,
                  .scale_a = args.scale_a,
                  .scale_b = args.scale_b};
    if (copies_a_) {
      transpose_bytes(args.a, workspace + a_at_, d_.k, d_.m, d_.a_row(), stream);
      blas.a = workspace + a_at_;
    }
    if (copies_b_) {
      transpose_bytes(args.b, workspace + b_at_, d_.k, d_.n, d_.b_row(), stream);
      blas.b = workspace + b_at_;
    }
    if (casts_bias_) {
      cast_bias(args.bias, d_.bias_type, workspace + bias_at_, d_.out, d_.n, stream);
      blas.bias = workspace + bias_at_;
    }
    parts_.plan->run(stream, blas);
    if (parts_.bias) add_bias(blas.out, blas.bias, d_.out, d_.m, d_.n, d_.out_row(), stream);
    void* const rest = workspace + rest_at_;
    if (parts_.forward) parts_.forward->run(to, {.x = args.aux, .y = args.out, .workspace = rest});
    if (parts_.backward) parts_.backward->run(to, {.x = args.aux, .dy = args.out, .dx = args.out, .workspace = rest});
    if (row_sums_) row_sums_->run(args.a, args.row_sums, rest, d_.accumulate, stream);
  }

 private:
  MatmulDesc d_;
  Parts parts_;
  int architecture_;
  bool copies_a_, copies_b_;
  bool casts_bias_ = false;
  std::optional<RowSums> row_sums_;
  std::size_t a_at_ = 0, b_at_ = 0, bias_at_ = 0, rest_at_ = 0;  // in the workspace
  std::size_t workspace_bytes_ = 0;
};

// Adds the activation op that the library does not fuse; returns the reason if there is none.
std::string add_activation(Device& device, const MatmulDesc& d, Parts& parts) {
  if (d.out_stride != 0 && d.out_stride != d.n) return "GELU needs an output with contiguous rows";
  const ActivationDesc desc{is_erf(d.epilogue) ? ActivationKind::gelu_erf : ActivationKind::gelu_tanh, d.m, d.n,
                            storage_type(d.out)};
  parts.gelu = true;
  if (is_gradient(d.epilogue)) {
    auto made = make_cuda<ActivationBackward>(device, desc);
    if (!made) return made.reason();
    parts.backward = made.take();
  } else {
    auto made = make_cuda<ActivationForward>(device, desc);
    if (!made) return made.reason();
    parts.forward = made.take();
  }
  return "";
}

// The plan of a product with something fused, which is optional: whatever the library returns means "no", unless the
// device is lost.
Made<BlasPlan> make_fused_plan(Device& device, const BlasProduct& product) {
  try {
    return make_blas_plan(product);
  } catch (const Error& error) {
    if (device.lost()) throw;
    return Made<BlasPlan>::no(error.what());
  }
}

// Makes a plan with as much fused as the library can run: bias and GELU, then bias alone, then the bare product.
std::string plan_product(Device& device, const MatmulDesc& d, BlasProduct product, Parts& parts) {
  // The library's GELU uses an approximate tanh, which 16-bit outputs hide and 32-bit ones do not. Before Hopper it is
  // a separate kernel after the product, slower than ours (seen by llm.c, pull requests 338 and 591).
  const bool gelu = d.epilogue != Epilogue::none;
  const bool fusable = gelu && !is_erf(d.epilogue) && size_of(d.out) == 2 && device.info().compute_capability >= 90;
  std::string reason;
  for (const bool fuse_gelu : {true, false}) {
    if (fuse_gelu && !fusable) continue;
    for (const bool fuse_bias : {true, false}) {
      if (fuse_bias != d.bias && (fuse_bias || fuse_gelu)) continue;  // nothing to fuse, or GELU before the bias
      product.bias = fuse_bias;
      product.gelu = !fuse_gelu ? BlasGelu::none : is_gradient(d.epilogue) ? BlasGelu::gradient : BlasGelu::forward;
      auto made = fuse_bias || fuse_gelu ? make_fused_plan(device, product) : make_blas_plan(product);
      if (!made) {
        reason = made.reason();
        continue;
      }
      parts.plan = made.take();
      const SearchResult found = choose_fastest(*parts.plan, device);
      if (!found.runs) {
        reason = found.how;
        continue;
      }
      parts.choice = found.how;
      parts.bias = d.bias && !fuse_bias;
      return gelu && !fuse_gelu ? add_activation(device, d, parts) : "";
    }
  }
  return reason;
}

// A product with row sums on random operands.
class SumsTrial {
 public:
  SumsTrial(Device& device, Stream& stream, const MatmulDesc& d, std::size_t workspace_bytes)
      : device_(device),
        stream_(stream),
        arrays_(device, stream, workspace_bytes),
        out_bytes_(bytes_of(d.m * d.out_row(), d.out)),
        sums_bytes_(bytes_of(d.m, DType::f32)) {
    args_.a = arrays_.array(d.a, (d.transpose_a ? d.k : d.m) * d.a_row(), "a");
    args_.b = arrays_.array(d.b, (d.transpose_b ? d.n : d.k) * d.b_row(), "b");
    args_.out = arrays_.keep(device.allocate(out_bytes_));
    args_.row_sums = arrays_.keep(device.allocate(sums_bytes_));
    args_.workspace = arrays_.workspace();
  }

  void run(Matmul& op) { op.run(stream_, args_); }
  // The product's elements as stored, then the sums.
  std::vector<float> results(Matmul& op) {
    device_.zero(args_.out, out_bytes_, stream_);
    run(op);
    std::vector<float> all((out_bytes_ + sums_bytes_) / sizeof(float));
    device_.copy(all.data(), args_.out, out_bytes_, stream_);
    device_.copy(all.data() + out_bytes_ / sizeof(float), args_.row_sums, sums_bytes_, stream_);
    stream_.synchronize();
    return all;
  }

 private:
  Device& device_;
  Stream& stream_;
  TrialArrays arrays_;
  std::size_t out_bytes_, sums_bytes_;
  MatmulArgs args_;
};

bool alike(const std::vector<float>& one, const std::vector<float>& other, std::size_t begin, std::size_t end) {
  double squares = 0, differences = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto x = static_cast<double>(one[i]), y = static_cast<double>(other[i]);
    squares += x * x;
    differences += (x - y) * (x - y);
  }
  return differences <= 1e-6 * squares;  // NaN is not
}

// Whether the library's op is right, repeats its bits and is faster than the other one, with our own kernel's sums.
bool library_sums_better(Device& device, const MatmulDesc& d, const std::vector<std::unique_ptr<CudaMatmul>>& ops) {
  const auto stream = device.make_stream();
  SumsTrial trial(device, *stream, d, std::max(ops[0]->workspace_bytes(), ops[1]->workspace_bytes()));
  const std::vector<float> want = trial.results(*ops[0]), got = trial.results(*ops[1]);
  const std::size_t product_end = want.size() - static_cast<std::size_t>(d.m);
  return got == trial.results(*ops[1]) && alike(want, got, 0, product_end) &&
         alike(want, got, product_end, want.size()) &&
         fastest(device, *stream, ops, [&](Matmul& op) { trial.run(op); }) == std::size_t{1};
}

// The library can sum a's rows while it multiplies, which saves a pass over them, but not with every GPU's fastest
// kernels, and the order of these sums is undocumented. So use it only if a trial shows it to be better.
std::unique_ptr<Matmul> with_best_sums(Device& device, const MatmulDesc& d, BlasProduct product,
                                       std::unique_ptr<CudaMatmul> own) {
  const std::string by_library = "the library's", by_kernel = "our own kernel's";
  product.sums = true;
  std::vector<std::unique_ptr<CudaMatmul>> ops;
  ops.push_back(std::move(own));
  const auto add_library = [&] {
    auto made = make_fused_plan(device, product);
    if (!made) return false;
    Parts parts;
    parts.plan = made.take();
    const SearchResult found = choose_fastest(*parts.plan, device);
    parts.choice = found.how;
    if (found.runs) ops.push_back(std::make_unique<CudaMatmul>(device, d, std::move(parts), false, false));
    return found.runs;
  };
  const auto accept = [&](const std::string& known) { return known == by_kernel || add_library(); };
  const auto search = [&]() -> std::string {
    try {
      return add_library() && library_sums_better(device, d, ops) ? by_library : by_kernel;
    } catch (const Error&) {  // no memory for the trial, or the library refuses to run what it offered
      if (device.lost()) throw;
      return "";
    }
  };
  const bool library = choices_of(device).find("row sums of " + product.key(), accept, search) == by_library;
  return std::move(ops[library ? 1 : 0]);
}

std::string refusal(const Device& device, const MatmulDesc& d) {
  const int capability = device.info().compute_capability;
  if (d.form == WeightForm::inner_product) return "cuBLASLt has no inner products";
  if (d.form == WeightForm::tiles) return "tiles are for CPUs";
  const bool bytes = size_of(d.a) == 1;
  if (d.form == WeightForm::packed && !bytes) return "weights are used as stored";
  if (d.form == WeightForm::packed && d.transpose_b) return "b already has the layout that the library needs";
  if (d.form == WeightForm::packed && d.pack_from != d.b) return "a separate op rounds weights to 8 bits";
  if (d.a == DType::u8) return "cuBLASLt multiplies s8 x s8, not u8 x s8";
  if (is_fp8(d.a) && capability < 89)
    return fmt::format("fp8 needs compute capability 8.9, this is {}.{}", capability / 10, capability % 10);
  if (is_fp8(d.a) && (d.k % 16 != 0 || d.n % 16 != 0))
    return fmt::format("fp8 products need k and n in multiples of 16, not {} and {}", d.k, d.n);
  if (d.a == DType::s8 && (d.k % 4 != 0 || d.n % 4 != 0))
    return fmt::format("int8 products need k and n in multiples of 4, not {} and {}", d.k, d.n);
  return "";
}

}  // namespace

template <>
Made<Matmul> make_cuda(Device& device, const MatmulDesc& d) {
  if (std::string reason = refusal(device, d); !reason.empty()) return Made<Matmul>::no(std::move(reason));
  const bool bytes = size_of(d.a) == 1;
  const bool copies_a = bytes && d.transpose_a;
  const bool copies_b = bytes && !d.transpose_b && d.form == WeightForm::plain;
  BlasProduct product{.m = d.m, .n = d.n, .k = d.k, .a = d.a, .b = d.b, .out = storage_type(d.out)};
  product.transpose_a = d.transpose_a && !copies_a;
  product.transpose_b = d.transpose_b || bytes;
  product.a_stride = copies_a ? 0 : d.a_stride;
  product.b_stride = copies_b || d.form == WeightForm::packed ? 0 : d.b_stride;
  product.out_stride = d.out_stride;
  product.beta = d.accumulate ? 1 : 0;
  product.a_alignment = product.b_alignment = product.out_alignment = 16;  // slices of arenas
  product.workspace_limit = std::size_t{128} << 20;  // fits the parts of GPT-2's weight gradients, split seven ways
  product.scaled = is_fp8(d.a);
  product.fast_accumulate = d.fast_accumulate;
  Parts parts;
  if (std::string reason = plan_product(device, d, product, parts); !reason.empty())
    return Made<Matmul>::no(std::move(reason));
  auto op = std::make_unique<CudaMatmul>(device, d, std::move(parts), copies_a, copies_b);
  // The layout of a weight gradient, for which others have the library sum, too.
  const bool fusable = d.row_sums && d.transpose_a && !d.transpose_b && !d.accumulate && !d.bias &&
                       d.epilogue == Epilogue::none && size_of(d.a) == 2 && d.out == DType::f32;
  if (fusable) return with_best_sums(device, d, product, std::move(op));
  return std::unique_ptr<Matmul>(std::move(op));
}

}  // namespace assay::ops
