// 8-bit tensors: their slots among the step's scales, and the instructions that round them.
#include "workloads/nn/builder.h"

#include "harness/core/error.h"

#include <algorithm>

namespace assay::nn {

namespace {

ops::QuantizeDesc desc_of(const Builder::Rounding& rounding, bool accumulate) {
  return {.rows = rounding.rows,
          .columns = rounding.columns,
          .from = rounding.from,
          .to = rounding.to,
          .plain = rounding.plain,
          .transposed = rounding.transposed,
          .column_sums = static_cast<bool>(rounding.column_sums),
          .accumulate = accumulate};
}

}  // namespace

std::size_t Builder::slot_of(const std::string& name, DType dtype) {
  auto& list = layout_.rounded;
  const auto at = std::ranges::find(list, name, &RoundedTensor::name);
  const auto slot = static_cast<std::size_t>(at - list.begin());
  if (at == list.end()) list.push_back({name, dtype});
  return slot;
}

Tensor Builder::scaling(Region region, std::size_t slot) {
  const char* kind = region == Region::amax ? "amax" : region == Region::scales ? "scale" : "inverse_scale";
  const std::string name = fmt::format("{}/{}", kind, layout_.rounded[slot].name);
  if (const auto known = lasting_.find(name); known != lasting_.end()) return known->second;
  // Opaque, since an infinite magnitude is never the first culprit: the tensor it came from was written before.
  TensorInfo info{.name = name, .bytes = sizeof(float), .opaque = true, .region = region};
  info.offset = slot * sizeof(float);
  return lasting_[name] = add(std::move(info));
}

void Builder::append_rounding(Tensor x, const Rounding& rounding, const Rounded& to, std::size_t slot) {
  const bool adds = rounding.column_sums && adds_to(rounding.column_sums);
  const auto op = this->op<ops::Quantize>(desc_of(rounding, adds));
  const Tensor scale = scaling(Region::scales, slot), sums = gradient(rounding.column_sums);
  // Evaluation rounds like the next training step, but does not touch the history.
  const Tensor amax = training() ? scaling(Region::amax, slot) : Tensor{};
  using Args = ops::Quantize::Args;
  run(op, {{&Args::x, x}, {&Args::scale, scale}},
      {{&Args::y, to.plain}, {&Args::y_transposed, to.transposed}, {&Args::amax, amax}, {&Args::column_sums, sums}});
  program_.instructions.back().rounds = static_cast<std::int32_t>(slot);
}

Rounded Builder::rounded(Tensor x, const Rounding& rounding) {
  const std::size_t slot = slot_of(fmt::format("{}/{}", scope_, rounding.name), rounding.to);
  const std::int64_t elements = rounding.rows * rounding.columns;
  Rounded made;
  if (rounding.plain) made.plain = tensor(fmt::format("{}.fp8", rounding.name), elements, rounding.to);
  if (rounding.transposed)
    made.transposed = tensor(fmt::format("{}.fp8_transposed", rounding.name), elements, rounding.to);
  made.inverse = scaling(Region::inverse_scales, slot);
  append_rounding(x, rounding, made, slot);
  return made;
}

Rounded Builder::rounded_weight(Parameter parameter) {
  if (const auto known = rounded_weights_.find(parameter.index); known != rounded_weights_.end()) return known->second;
  const ParameterSpec& weight_spec = spec(parameter);
  ASSAY_CHECK(weight_spec.shape.size() == 2, "{}", weight_spec.name);
  const Rounding rounding{.name = "weight",
                          .from = master(),
                          .rows = weight_spec.shape[0],
                          .columns = weight_spec.shape[1],
                          .transposed = training()};
  const std::size_t slot = slot_of(weight_spec.name, rounding.to);
  const auto bytes = static_cast<std::size_t>(weight_spec.count());
  Rounded made;
  made.inverse = scaling(Region::inverse_scales, slot);
  TensorInfo info{.name = fmt::format("rounded/{}", weight_spec.name), .bytes = bytes, .dtype = rounding.to};
  if (variant_.packing == Packing::transient) {
    info.purpose = Purpose::packed;
    made.plain = add(info);
    if (rounding.transposed) made.transposed = add(info);
  } else {
    const std::pair id(static_cast<std::size_t>(parameter.index), op<ops::Quantize>(desc_of(rounding, false)).get());
    const auto [place, inserted] = layout_.packed.emplace(id, layout_.packed_bytes);
    const std::size_t stride = aligned(bytes);
    if (inserted) layout_.packed_bytes += 2 * stride;
    info.region = Region::packed;
    info.offset = place->second;
    made.plain = add(info);
    info.offset += stride;
    made.transposed = add(info);
  }
  if (variant_.packing != Packing::reuse) append_rounding(weight(parameter), rounding, made, slot);
  return rounded_weights_[parameter.index] = made;
}

}  // namespace assay::nn
