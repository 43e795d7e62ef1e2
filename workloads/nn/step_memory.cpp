#include "workloads/nn/step_memory.h"

#include "harness/core/error.h"
#include "harness/core/units.h"
#include "workloads/nn/arrays.h"

namespace assay::nn {

namespace {

constexpr std::size_t page = 4096;

float max_of(DType fp8) { return fp8 == DType::fp8_e4m3 ? 448.0f : 57344.0f; }

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

StepMemory::StepMemory(const StepPlan& plan, Device& device, Communicator& comm, Stream& stream)
    : input_bytes_(plan.layout.input_bytes) {
  struct Piece {
    std::byte** at;
    std::size_t bytes;
  };
  const std::size_t moment = plan.bytes(Array::moments);
  std::byte* scales = nullptr;
  const Piece pieces[] = {
      {&weights_, plan.bytes(Array::masters)},
      {&copies_, plan.bytes(Array::copies)},
      {&moments_[0], moment},
      {&moments_[1], plan.moments() > 1 ? moment : 0},
      {&running_, plan.layout.running_bytes},
      {&packed_, plan.layout.packed_bytes},
      {&constants_, plan.layout.constant_bytes},
      {&inputs_, input_bytes_ * static_cast<std::size_t>(plan.layout.options.accumulate)},
      {&block_, sizeof(StepBlock)},
      {&scales, plan.scale_floats() * sizeof(float)},
      {&arena_, plan.arena_bytes},
  };
  const std::size_t gradient_bytes = whole_pages(plan.bytes(Array::gradients));
  std::size_t total = gradient_bytes;
  for (const Piece& piece : pieces) total += whole_pages(piece.bytes);
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("the step does not fit in memory: it needs {}; {}", plan.memory.text(), why));
  };
  const std::uint64_t usable = device.free_bytes().value_or(device.info().memory_bytes);
  if (total > usable) refuse(fmt::format("{} are available", format_bytes(static_cast<double>(usable))));
  try {
    // NCCL can then add them up in place, in the NVLink switch too.
    if (comm.size() > 1) registered_ = comm.allocate_registered(gradient_bytes, Registration::local);
    if (registered_.data()) total -= gradient_bytes;
    buffer_ = device.allocate(total);
  } catch (const Error& error) {
    refuse(error.what());
  }
  auto* at = buffer_.as<std::byte>();
  gradients_ = registered_.data() ? registered_.as<std::byte>() : std::exchange(at, at + gradient_bytes);
  for (const Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    *piece.at = at;
    at += whole_pages(piece.bytes);
  }
  device.zero(buffer_.data(), total, stream);
  if (registered_.data()) device.zero(gradients_, gradient_bytes, stream);
  stream.synchronize();
  if (scales) {
    const auto& rounded = plan.layout.rounded;
    auto* first = reinterpret_cast<float*>(scales);
    const std::size_t count = rounded.size();
    scales_ = {first, first + count, first + 2 * count, first + 3 * count, first + 4 * count};
    std::vector<float> largest;
    for (const RoundedTensor& tensor : rounded) largest.push_back(max_of(tensor.dtype));
    device.copy(scales_.largest, largest.data(), count * sizeof(float), stream);
    stream.synchronize();
  }
  std::vector<double> values;
  for (const Constant& constant : plan.layout.constants) {
    values.assign(static_cast<std::size_t>(constant.elements), 0.0);
    constant.fill(values.data());
    std::vector<std::byte> stored(constant.bytes());
    store(stored.data(), constant.dtype, values.data(), constant.elements);
    device.copy(constants_ + constant.offset, stored.data(), stored.size(), stream);
    stream.synchronize();
  }
}

Places StepMemory::places(const Program& program, std::int64_t micro_batch) const {
  Places places(program.tensors);
  places.set(Region::arena, arena_);
  places.set(Region::weights, weights_);
  places.set(Region::copies, copies_);
  places.set(Region::gradients, gradients_);
  places.set(Region::running, running_);
  places.set(Region::packed, packed_);
  places.set(Region::constants, constants_);
  places.set(Region::inputs, inputs(micro_batch));
  places.set(Region::state, block_);
  places.set(Region::amax, scales_.amax);
  places.set(Region::scales, scales_.scale);
  places.set(Region::inverse_scales, scales_.inverse);
  return places;
}

}  // namespace assay::nn
