#include "workloads/nn/builder.h"

#include "harness/core/error.h"
#include "workloads/nn/step_block.h"

#include <algorithm>

namespace assay::nn {

Builder::Builder(StepLayout& layout, const Variant& variant, Program& program)
    : layout_(layout), variant_(variant), program_(program), contributed_(layout.specs.size()) {
  // Weights and gradients of parameter p are tensors 2 p and 2 p + 1.
  const Precision& precision = layout.options.precision;
  for (std::size_t i = 0; i < layout.specs.size(); ++i) {
    const auto elements = static_cast<std::size_t>(layout.specs[i].count());
    for (const bool gradient : {false, true}) {
      TensorInfo info;
      info.name = (gradient ? "gradients/" : "weights/") + layout.specs[i].name;
      info.dtype = gradient ? precision.grad : precision.master;
      info.bytes = elements * size_of(info.dtype);
      info.region = gradient ? Region::gradients : Region::weights;
      info.parameter = i;
      add(std::move(info));
    }
  }
  TensorInfo sums{.name = "loss", .bytes = sizeof(ops::LossSums), .opaque = true, .region = Region::state};
  sums.offset = offsetof(StepBlock, sums);
  sums_ = add(std::move(sums));
  TensorInfo scale{.name = "gradient_scale", .bytes = sizeof(float), .opaque = true, .region = Region::state};
  scale.offset = offsetof(StepBlock, state) + offsetof(ops::StepState, gradient_scale);
  scale_ = add(std::move(scale));
}

Builder::Scope::Scope(Builder& builder, std::string_view name) : builder_(builder), outer_(builder.scope_) {
  builder_.scope_ = builder_.full_name(name);
}

Builder::Scope::~Scope() { builder_.scope_ = std::move(outer_); }

std::string Builder::full_name(std::string_view name) const {
  if (scope_.empty() || name.empty()) return scope_ + std::string(name);
  return fmt::format("{}.{}", scope_, name);
}

void Builder::refuse(const std::string& reason) const {
  throw UsageError(scope_.empty() ? reason : fmt::format("{}: {}", scope_, reason));
}

Tensor Builder::add(TensorInfo info) {
  program_.tensors.push_back(std::move(info));
  return {static_cast<std::int32_t>(program_.tensors.size() - 1)};
}

Tensor Builder::tensor(std::string_view name, std::int64_t elements, DType dtype) {
  ASSAY_CHECK(elements > 0, "{}", full_name(name));
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  return add({.name = full_name(name), .bytes = bytes, .dtype = dtype});
}

Tensor Builder::rows(std::string_view name, std::int64_t rows, std::int64_t row, std::int64_t stride, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(rows * stride) * size_of(dtype);
  return add({.name = full_name(name), .bytes = bytes, .dtype = dtype, .row = row, .stride = stride});
}

Tensor Builder::opaque(std::string_view name, std::size_t bytes, Purpose purpose) {
  if (bytes == 0) return {};
  return add({.name = full_name(name), .bytes = bytes, .dtype = DType::u8, .opaque = true, .purpose = purpose});
}

Parameter Builder::parameter(std::string_view name) const {
  const std::string full = full_name(name);
  const auto found = layout_.index.find(full);
  ASSAY_CHECK(found != layout_.index.end(), "the model lists no parameter \"{}\"", full);
  return {static_cast<std::int32_t>(found->second)};
}

Tensor Builder::weight(Parameter parameter) const { return parameter ? Tensor{2 * parameter.index} : Tensor{}; }

Tensor Builder::gradient(Parameter parameter) const { return parameter ? Tensor{2 * parameter.index + 1} : Tensor{}; }

void Builder::widen(Parameter parameter, std::int64_t elements) {
  if (!parameter) return;
  std::int64_t& room = layout_.room[static_cast<std::size_t>(parameter.index)];
  room = std::max(room, elements - spec(parameter).count());
}

bool Builder::adds_to(Parameter parameter) {
  const auto index = static_cast<std::size_t>(parameter.index);
  const bool again = contributed_[index];
  contributed_[index] = true;
  // Divided gradients are added up after they were reduced.
  return again || (variant_.accumulate && !layout_.options.layout.divides(2));
}

std::pair<Tensor, Tensor> Builder::running(std::string_view name, std::int64_t channels, double momentum) {
  const auto one = [&](const char* kind, double initial) {
    const std::string full = fmt::format("{}/{}", kind, full_name(name));
    if (const auto known = lasting_.find(full); known != lasting_.end()) return known->second;
    auto& list = layout_.running;
    auto at = std::ranges::find(list, full, &Lasting::name);
    if (at == list.end()) {
      const Lasting place{full, channels, statistics(), layout_.running_bytes};
      at = list.insert(list.end(), RunningStatistic{place, momentum, initial});
      layout_.running_bytes += aligned(at->bytes());
    }
    TensorInfo info{.name = full, .bytes = at->bytes(), .dtype = at->dtype, .region = Region::running};
    info.offset = at->offset;
    return lasting_[full] = add(std::move(info));
  };
  const Tensor mean = one("running_mean", 0.0);
  return {mean, one("running_variance", 1.0)};
}

Tensor Builder::constant(const std::string& name, std::int64_t elements, std::function<void(double*)> fill) {
  if (const auto known = lasting_.find(name); known != lasting_.end()) return known->second;
  auto& list = layout_.constants;
  auto at = std::ranges::find(list, name, &Constant::name);
  if (at == list.end()) {
    const Lasting place{name, elements, statistics(), layout_.constant_bytes};
    at = list.insert(list.end(), Constant{place, std::move(fill)});
    layout_.constant_bytes += aligned(at->bytes());
  }
  TensorInfo info{.name = name, .bytes = at->bytes(), .dtype = at->dtype, .region = Region::constants};
  info.offset = at->offset;
  return lasting_[name] = add(std::move(info));
}

Tensor Builder::input(Input which, std::int64_t elements) {
  static constexpr const char* names[input_kinds] = {"inputs/ids", "inputs/type_ids", "inputs/lengths", "inputs/images",
                                                     "inputs/targets"};
  const std::string name = names[static_cast<std::size_t>(which)];
  if (const auto known = lasting_.find(name); known != lasting_.end()) return known->second;
  auto& entry = layout_.inputs[static_cast<std::size_t>(which)];
  if (!entry) {
    entry = Lasting{name, elements, which == Input::images ? DType::f32 : DType::i32, layout_.input_bytes};
    layout_.input_bytes += aligned(entry->bytes());
  }
  ASSAY_CHECK(entry->elements == elements, "{}", name);
  TensorInfo info{.name = name, .bytes = entry->bytes(), .dtype = entry->dtype, .region = Region::inputs};
  info.offset = entry->offset;
  return lasting_[name] = add(std::move(info));
}

std::shared_ptr<ops::Matmul> Builder::weight_matmul(ops::MatmulDesc desc) {
  std::string reason;
  desc.pack_from = packed_type();
  for (const auto form : {ops::WeightForm::tiles, ops::WeightForm::packed}) {
    desc.form = form;
    if (auto packed = layout_.ops.find<ops::Matmul>(desc, reason)) return packed;
  }
  desc.form = ops::WeightForm::plain;
  return op<ops::Matmul>(desc);
}

Tensor Builder::plain_operand(Parameter parameter) {
  if (size_of(master()) == size_of(compute())) return weight(parameter);
  if (layout_.copies_weights || layout_.packs_copies) {
    const std::string name = "copies/" + spec(parameter).name;
    if (const auto known = lasting_.find(name); known != lasting_.end()) return known->second;
    TensorInfo info{.name = name, .dtype = compute(), .region = Region::copies};
    info.bytes = static_cast<std::size_t>(spec(parameter).count()) * size_of(compute());
    info.parameter = static_cast<std::size_t>(parameter.index);
    return lasting_[name] = add(std::move(info));
  }
  ops::ElementwiseDesc desc{.in = master(), .out = compute()};
  desc.count = spec(parameter).count() + layout_.room[static_cast<std::size_t>(parameter.index)];
  const auto cast = op<ops::Elementwise>(desc);
  const std::size_t bytes = static_cast<std::size_t>(desc.count) * size_of(compute());
  // A cast used as packing gets no workspace; backends need none.
  ASSAY_CHECK(cast->workspace_bytes() == 0, "{}", cast->implementation());
  return packed_operand(parameter, cast.get(), bytes, [cast](Stream& stream, const void* from, void* to) {
    cast->run(stream, {.a = from, .out = to});
  });
}

Tensor Builder::packed_operand(Parameter parameter, const ops::Op* key, std::size_t bytes, Pack pack) {
  const Tensor from = layout_.packs_copies ? plain_operand(parameter) : weight(parameter);
  const auto fill = [&](Tensor to) {
    emit({from}, {to}, [from, to, pack = std::move(pack)](Stream& stream, const Places& places) {
      pack(stream, places.at(from), places.at(to));
    });
  };
  const std::string name = fmt::format("packed/{}", spec(parameter).name);
  if (variant_.packing == Packing::transient) {
    const Tensor to =
        add({.name = name, .bytes = bytes, .dtype = DType::u8, .opaque = true, .purpose = Purpose::packed});
    fill(to);
    return to;
  }
  const auto id = std::pair(static_cast<std::size_t>(parameter.index), key);
  if (const auto known = packed_.find(id); known != packed_.end()) return known->second;
  const auto [place, inserted] = layout_.packed.emplace(id, layout_.packed_bytes);
  if (inserted) layout_.packed_bytes += aligned(bytes);
  TensorInfo info{.name = name, .bytes = bytes, .dtype = DType::u8, .opaque = true, .region = Region::packed};
  info.offset = place->second;
  const Tensor to = add(std::move(info));
  if (variant_.packing == Packing::pack) fill(to);
  return packed_[id] = to;
}

void Builder::emit(std::vector<Tensor> reads, std::vector<Tensor> writes,
                   std::function<void(Stream&, const Places&)> run) {
  std::erase(reads, Tensor{});
  std::erase(writes, Tensor{});
  if (program_.scopes.empty() || program_.scopes.back() != scope_) program_.scopes.push_back(scope_);
  program_.instructions.push_back(
      {program_.scopes.size() - 1, phase_, std::move(reads), std::move(writes), std::move(run)});
}

void Builder::finish() {
  program_.gradient_ready.assign(layout_.specs.size(), 0);
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    const Instruction& instruction = program_.instructions[i];
    if (instruction.phase == Phase::forward) program_.forward_done = i + 1;
    for (const Tensor tensor : instruction.writes) {
      const TensorInfo& info = program_.tensors[static_cast<std::size_t>(tensor.id)];
      if (info.region == Region::gradients) program_.gradient_ready[info.parameter] = i + 1;
    }
  }
  if (training())
    for (std::size_t i = 0; i < layout_.specs.size(); ++i)
      ASSAY_CHECK(program_.gradient_ready[i] > 0, "nothing writes the gradient of {}", layout_.specs[i].name);
}

}  // namespace assay::nn
