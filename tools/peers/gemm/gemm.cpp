// A bare matrix-product loop: gemm DTYPE M N K with DTYPE f32, bf16, int8 (oneDNN) or f64 (stock OpenBLAS).
// Random operands that stay in cache. Alternates between all forms and prints the median of the best as one JSON line.
// Run with OMP_PLACES=cores OMP_PROC_BIND=close: one bound thread per core.
#include <dlfcn.h>
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Form {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;
};

memory filled(const memory::desc& desc, const dnnl::engine& engine, unsigned seed) {
  memory data(desc, engine);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const std::size_t bytes = desc.get_size();
  auto* raw = static_cast<unsigned char*>(data.get_data_handle());
  switch (desc.get_data_type()) {
    case memory::data_type::f32:
      for (std::size_t i = 0; i < bytes / 4; ++i) reinterpret_cast<float*>(raw)[i] = normal(random);
      break;
    case memory::data_type::bf16:
      for (std::size_t i = 0; i < bytes / 2; ++i) {
        const float value = normal(random);
        std::uint32_t bits;
        std::memcpy(&bits, &value, 4);
        reinterpret_cast<std::uint16_t*>(raw)[i] = static_cast<std::uint16_t>(bits >> 16);
      }
      break;
    default:
      for (std::size_t i = 0; i < bytes; ++i) raw[i] = static_cast<unsigned char>(random());
  }
  return data;
}

std::vector<Form> onednn_forms(const std::string& dtype, long m, long n, long k) {
  using Type = memory::data_type;
  using Tag = memory::format_tag;
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  const Type a_type = dtype == "f32" ? Type::f32 : dtype == "bf16" ? Type::bf16 : Type::u8;
  const Type b_type = dtype == "int8" ? Type::s8 : a_type;
  const Type out_type = dtype == "int8" ? Type::s32 : a_type;
  const memory::desc a_desc({m, k}, a_type, Tag::ab), b_desc({k, n}, b_type, Tag::ab),
      out_desc({m, n}, out_type, Tag::ab);
  static memory a = filled(a_desc, engine, 1), b = filled(b_desc, engine, 2), out(out_desc, engine);

  std::vector<Form> forms;
  const auto add = [&](const char* name, const dnnl::primitive& primitive, const memory::desc& weights_desc,
                       const memory::desc& canonical) {
    memory weights(weights_desc, engine);
    memory source(canonical, engine, b.get_data_handle());
    dnnl::reorder(source, weights).execute(stream, source, weights);
    stream.wait();
    forms.push_back({name,
                     [=] {
                       primitive.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, out}});
                       stream.wait();
                     },
                     {}});
  };
  const dnnl::matmul::primitive_desc plain(engine, a_desc, b_desc, out_desc);
  add("plain", dnnl::matmul(plain), plain.weights_desc(), b_desc);
  const dnnl::matmul::primitive_desc packed(engine, a_desc, memory::desc({k, n}, b_type, Tag::any), out_desc);
  add("packed", dnnl::matmul(packed), packed.weights_desc(), b_desc);
  const dnnl::inner_product_forward::primitive_desc inner(engine, dnnl::prop_kind::forward_inference, a_desc,
                                                          memory::desc({n, k}, b_type, Tag::any), out_desc);
  add("inner_product", dnnl::inner_product_forward(inner), inner.weights_desc(), memory::desc({n, k}, b_type, Tag::ba));
  return forms;
}

std::vector<Form> blas_form(int m, int n, int k) {
  using Dgemm =
      void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
  void* library = nullptr;
  for (const char* file : {OPENBLAS_OPENMP, "libopenblaso.so.0", "libopenblas.so.0"})
    if (!library) library = dlopen(file, RTLD_NOW);
  const auto dgemm = library ? reinterpret_cast<Dgemm>(dlsym(library, "cblas_dgemm")) : nullptr;
  if (!dgemm) {
    std::puts(R"({"skip": "no OpenBLAS"})");
    std::exit(0);
  }
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  static std::vector<double> a, b, out;
  const auto fill = [&](std::vector<double>& x, int rows, int columns) {
    x.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
    for (double& value : x) value = normal(random);
  };
  fill(a, m, k), fill(b, k, n), fill(out, m, n);
  return {{"plain", [=] { dgemm(101, 111, 111, m, n, k, 1, a.data(), k, b.data(), n, 0, out.data(), n); }, {}}};
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("gemm DTYPE M N K\n", stderr), 2;
  if (omp_get_num_places() > 0) omp_set_num_threads(omp_get_num_places());
  const std::string dtype = argv[1];
  const long m = std::atol(argv[2]), n = std::atol(argv[3]), k = std::atol(argv[4]);
  std::vector<Form> forms = dtype == "f64" ? blas_form(static_cast<int>(m), static_cast<int>(n), static_cast<int>(k))
                                           : onednn_forms(dtype, m, n, k);
  for (Form& form : forms)
    for (const auto start = Clock::now(); since(start) < 0.2;) form.run();
  // Rounds of at least 20 ms per form, for 2 s in all.
  for (const auto start = Clock::now(); since(start) < 2.0;)
    for (Form& form : forms) {
      const auto round = Clock::now();
      int runs = 0;
      while (since(round) < 0.02) form.run(), ++runs;
      form.seconds.push_back(since(round) / runs);
    }
  const Form* best = &forms.front();
  for (const Form& form : forms)
    if (median(form.seconds) < median(best->seconds)) best = &form;
  std::printf("{\"value\": %.6e, \"unit\": \"FLOP/s\", \"better\": \"higher\", \"form\": \"%s\"}\n",
              2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / median(best->seconds),
              best->name.c_str());
}
