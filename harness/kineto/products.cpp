#include "harness/kineto/products.h"

#include "harness/core/text.h"
#include "harness/core/whole_number.h"

#include <algorithm>
#include <map>
#include <utility>

namespace assay::kineto {
namespace {

using Sizes = std::vector<std::int64_t>;

// Sizes beyond these are none of a tensor, and their products stay within 64 bits.
constexpr std::int64_t max_size = std::int64_t(1) << 36, max_number = 1 << 24;

double elements(const Sizes& sizes) {
  double count = 1;
  for (const std::int64_t size : sizes) count *= static_cast<double>(size);
  return count;
}

double at_least_one(std::int64_t size) { return static_cast<double>(std::max<std::int64_t>(1, size)); }

std::optional<DType> dtype_of(const std::string& type) {
  static const std::map<std::string, DType> names = {
      {"float", DType::f32}, {"double", DType::f64}, {"c10::BFloat16", DType::bf16}, {"c10::Half", DType::fp16}};
  const auto found = names.find(type);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

// Numbers of "[2, 2]"; a single one counts for all dimensions. Empty: not such a list.
Sizes list_of(const std::string& text, std::size_t dimensions) {
  Sizes list;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return {};
  for (std::size_t at = 1; at < text.size();) {
    const std::size_t end = text.find_first_of(",]", at);
    const auto number = whole_number<std::int64_t>(text.substr(at, end - at));
    if (!number || *number < 0 || *number > max_number) return {};
    list.push_back(*number);
    at = text.find_first_not_of(' ', end + 1);
  }
  if (list.size() == 1) list.resize(dimensions, list.front());
  return list.size() == dimensions ? list : Sizes();
}

// The tensors that a formula names, all of one known type; absent if one is none.
struct Operands {
  const Inputs& inputs;
  DType dtype = DType::f32;
  double element_bytes = 0;

  const Sizes& sizes(std::size_t i) const { return inputs.all[i].sizes; }
  std::string value(std::size_t i) const { return i < inputs.values ? inputs.all[i].value : std::string(); }
  bool has(std::size_t i) const { return i < inputs.shapes && !sizes(i).empty() && std::ranges::min(sizes(i)) >= 0; }
  Work work(double flops, double moved) const { return {flops, moved * element_bytes, dtype}; }
};

std::optional<Operands> operands(const Inputs& inputs, std::size_t first, std::size_t count) {
  if (inputs.shapes < first + count || inputs.types < first + count) return std::nullopt;
  const auto dtype = dtype_of(inputs.all[first].type);
  if (!dtype) return std::nullopt;
  for (std::size_t i = first; i < first + count; ++i) {
    const Inputs::One& one = inputs.all[i];
    if (one.sizes.size() < 2 || one.type != inputs.all[first].type || std::ranges::min(one.sizes) < 0)
      return std::nullopt;
  }
  return Operands{inputs, *dtype, static_cast<double>(size_of(*dtype))};
}

// A (..., m, k) times B (..., k, n), with the same batch; behind an addend C if `first` is 1.
std::optional<Work> product(const Inputs& inputs, std::size_t first, std::size_t rank) {
  const auto all = operands(inputs, first, 2);
  if (!all) return std::nullopt;
  const Sizes &a = all->sizes(first), &b = all->sizes(first + 1);
  if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2] || (rank == 3 && a[0] != b[0]))
    return std::nullopt;
  const double n = static_cast<double>(b.back()), out = elements(a) / at_least_one(a.back()) * n;
  const bool adds = first > 0 && all->has(0) && all->value(first + 2) != "0";  // beta of C
  return all->work(2 * elements(a) * n, elements(a) + elements(b) + out + (adds ? elements(all->sizes(0)) : 0));
}

// Each element of the output, or of the input of a transposed one, meets a filter of the weight once.
double convolution_flops(const Sizes& input, const Sizes& weight, const Sizes& output, bool transposed) {
  return 2 * elements(transposed ? input : output) * elements(weight) / at_least_one(weight[0]);
}

// Input, weight, bias, stride, padding, dilation, transposed, output_padding, groups.
std::optional<Work> convolution(const Inputs& inputs) {
  const auto all = operands(inputs, 0, 2);
  if (!all || inputs.values < 9) return std::nullopt;
  const Sizes &input = all->sizes(0), &weight = all->sizes(1);
  if (input.size() < 3 || weight.size() != input.size()) return std::nullopt;
  const std::size_t dimensions = input.size() - 2;
  const Sizes stride = list_of(all->value(3), dimensions), padding = list_of(all->value(4), dimensions),
              dilation = list_of(all->value(5), dimensions), more = list_of(all->value(7), dimensions);
  const auto groups = whole_number<std::int64_t>(all->value(8));
  if (stride.empty() || padding.empty() || dilation.empty() || more.empty() || !groups || *groups < 1 ||
      *groups > max_number)
    return std::nullopt;
  const bool transposed = all->value(6) == "True";
  Sizes output{input[0], transposed ? weight[1] * *groups : weight[0]};
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::int64_t reach = dilation[i] * (weight[i + 2] - 1);
    if (stride[i] < 1) return std::nullopt;
    output.push_back(transposed ? (input[i + 2] - 1) * stride[i] - 2 * padding[i] + reach + more[i] + 1
                                : (input[i + 2] + 2 * padding[i] - reach - 1) / stride[i] + 1);
  }
  if (std::ranges::min(output) < 0) return std::nullopt;
  return all->work(convolution_flops(input, weight, output, transposed),
                   elements(input) + elements(weight) + elements(output) + (all->has(2) ? elements(all->sizes(2)) : 0));
}

// The output's gradient, input, weight, then as above from index 4 on; last which gradients are asked for.
std::optional<Work> convolution_backward(const Inputs& inputs) {
  const auto all = operands(inputs, 0, 3);
  if (!all || inputs.values < 11) return std::nullopt;
  const Sizes &output = all->sizes(0), &input = all->sizes(1), &weight = all->sizes(2);
  const std::string asked = all->value(10);
  const bool of_input = asked.starts_with("[True"), of_weight = asked.find(", True") == asked.find(',');
  const double forward = convolution_flops(input, weight, output, all->value(7) == "True");
  const double both = elements(input) + elements(weight);
  return all->work(forward * (of_input + of_weight), elements(output) + both * (of_input + of_weight));
}

// Query (..., l, e), key (..., s, e), value (..., s, f), mask, dropout, whether it is causal.
std::optional<Work> attention(const Inputs& inputs) {
  const auto all = operands(inputs, 0, 3);
  if (!all || inputs.values < 6) return std::nullopt;
  const Sizes &query = all->sizes(0), &key = all->sizes(1), &value = all->sizes(2);
  const auto l = static_cast<double>(query[query.size() - 2]), e = static_cast<double>(query.back()),
             s = static_cast<double>(key[key.size() - 2]), f = static_cast<double>(value.back());
  if (!(l > 0) || !(e > 0) || key.back() != query.back() || key[key.size() - 2] != value[value.size() - 2])
    return std::nullopt;
  const double most = std::min(l, s);  // row i of a causal one has the keys up to i
  const double pairs = all->value(5) == "True" ? most * (most + 1) / 2 + (l - most) * s : l * s;
  const double batch = elements(query) / (l * e);
  if (elements(key) > batch * s * e) return std::nullopt;  // a query for several batches
  Work work = all->work(2 * batch * pairs * (e + f), elements(query) + elements(key) + elements(value) + batch * l * f);
  if (all->has(3)) {
    const auto type = dtype_of(inputs.all[3].type);
    work.bytes += elements(all->sizes(3)) * (type ? static_cast<double>(size_of(*type)) : 1);  // else of bool
  }
  return work;
}

std::optional<Work> computed(ProductKind kind, const Inputs& inputs) {
  switch (kind) {
    case ProductKind::mm: return product(inputs, 0, 2);
    case ProductKind::addmm: return product(inputs, 1, 2);
    case ProductKind::bmm: return product(inputs, 0, 3);
    case ProductKind::baddbmm: return product(inputs, 1, 3);
    case ProductKind::convolution: return convolution(inputs);
    case ProductKind::convolution_backward: return convolution_backward(inputs);
    case ProductKind::attention: return attention(inputs);
  }
  return std::nullopt;
}

}  // namespace

void Inputs::add_shape() {
  if (++shapes <= max_count) all[shapes - 1].sizes.clear();
}
void Inputs::add_size(std::int64_t size) {
  if (shapes > 0 && shapes <= max_count && all[shapes - 1].sizes.size() < max_rank)
    all[shapes - 1].sizes.push_back(size <= max_size ? size : -1);
}
void Inputs::add_type(const std::string& type) {
  if (++types <= max_count) all[types - 1].type = type.substr(0, max_value);
}
void Inputs::add_value(const std::string& value) {
  if (++values <= max_count) all[values - 1].value = value.substr(0, max_value);
}

std::optional<ProductKind> product_kind(std::string_view name) {
  static const std::map<std::string_view, ProductKind> kinds = {
      {"aten::mm", ProductKind::mm},
      {"aten::addmm", ProductKind::addmm},
      {"aten::_addmm_activation", ProductKind::addmm},
      {"aten::bmm", ProductKind::bmm},
      {"aten::baddbmm", ProductKind::baddbmm},
      {"aten::convolution", ProductKind::convolution},
      {"aten::convolution_backward", ProductKind::convolution_backward},
      {"aten::scaled_dot_product_attention", ProductKind::attention}};
  const auto found = kinds.find(name);
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Work> work_of(ProductKind kind, const Inputs& inputs) {
  const auto work = computed(kind, inputs);
  return work && work->flops > 0 ? work : std::nullopt;
}

TracedWork traced_work(const Work& work, double seconds) {
  TracedWork traced;
  traced.flops = work.flops, traced.bytes = work.bytes, traced.seconds = seconds;
  traced.dtype = name_of(work.dtype);
  return traced;
}

void limit_by(const HardwareSheet* sheet, std::string_view kernel, TracedWork& work) {
  const std::string name = lower_case(kernel);
  const auto has = [&](std::string_view word) { return name.find(word) != name.npos; };
  if (work.dtype == "f32" && has("tf32")) work.dtype = "tf32";
  if (has("winograd") || has("fft")) return;
  if (work.dtype == "f32" && !has("sgemm") && !has("simt") && !has("ffma")) return;
  const auto peak = sheet ? sheet->peak_of(work.dtype) : std::nullopt;
  if (!peak || !sheet->memory_bandwidth) return;
  const double computing = work.flops / *peak, moving = work.bytes / *sheet->memory_bandwidth;
  work.least = std::max(computing, moving);
  work.least_by_memory = moving > computing ? moving : 0;
}

}  // namespace assay::kineto
