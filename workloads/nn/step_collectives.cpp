#include "workloads/nn/step_collectives.h"

#include "harness/core/error.h"
#include "harness/trace/trace.h"

#include <cmath>

namespace assay::nn {

namespace {

trace::Span span_of(const char* call, std::size_t bytes) {
  return trace::Span(trace::Category::communication, call, static_cast<std::int64_t>(bytes));
}

}  // namespace

StepCollectives::StepCollectives(const StepPlan& plan, const StepMemory& memory, Communicator& comm, Device& device)
    : plan_(plan), memory_(memory), device_(device) {
  if (plan.layout.running_bytes > 0) running_.emplace(plan, device, comm);
  reduction_ = make_reduction(comm, device);
}

void StepCollectives::connect(const Fp8Scales& scales, Stream& compute) {
  reduce_sums(compute);
  for (const Bucket& bucket : plan_.parameters.buckets)
    if (bucket.whole(Array::gradients)) reduce(bucket, compute);
  for (const Bucket& bucket : plan_.parameters.buckets) gather(bucket, compute);
  const Program& program = plan_.first;
  for (const Window& window : program.gathers) gather(window, memory_.arena() + window.offset, true, compute);
  for (const Window& window : program.reductions) reduce(window, memory_.arena() + window.offset, true, compute);
  if (plan_.divides()) reduce_square_sums(compute);
  reduce_magnitudes(scales, compute);
  join(compute);
  compute.synchronize();
}

void StepCollectives::begin(Stream& compute) {
  if (running_) running_->before(memory_, compute);
}

void StepCollectives::reduce_sums(Stream& compute) {
  if (running_)
    reduction_->submit([this](Communicator& comm, Stream& stream) { running_->reduce(memory_, comm, stream); },
                       compute);
  const auto job = [this](Communicator& comm, Stream& stream) {
    const auto span = span_of("all_reduce", sizeof(ops::LossSums));
    ops::LossSums& sums = memory_.block()->sums;
    static_assert(offsetof(ops::LossSums, correct) == offsetof(ops::LossSums, valid) + sizeof(std::int64_t));
    comm.all_reduce(&sums.loss, &sums.loss, 1, DType::f64, ReduceOp::sum, stream);
    comm.all_reduce(&sums.valid, &sums.valid, 2, DType::i64, ReduceOp::sum, stream);
  };
  reduction_->submit(job, compute);
}

void StepCollectives::reduce(const Bucket& bucket, Stream& compute) {
  const DType dtype = plan_.type(Array::gradients);
  std::byte* at = memory_.gradients() + plan_.offset(Array::gradients, bucket.in(Array::gradients).at);
  const auto count = static_cast<std::size_t>(bucket.end - bucket.begin);
  const auto slice = static_cast<std::size_t>(bucket.slice);
  const auto job = [at, count, slice, dtype](Communicator& comm, Stream& stream) {
    const bool divided = slice < count;
    const auto span = span_of(divided ? "reduce_scatter" : "all_reduce", count * size_of(dtype));
    if (divided)
      comm.reduce_scatter(at, at, slice, dtype, ReduceOp::sum, stream);
    else
      comm.all_reduce(at, at, count, dtype, ReduceOp::sum, stream);
  };
  reduction_->submit(job, compute);
}

void StepCollectives::reduce_square_sums(Stream& compute) {
  const auto count = static_cast<std::size_t>(plan_.norm->sums());
  const auto job = [at = memory_.arena(), count](Communicator& comm, Stream& stream) {
    const auto span = span_of("all_reduce", count * sizeof(double));
    comm.all_reduce(at, at, count, DType::f64, ReduceOp::sum, stream);
  };
  reduction_->submit(job, compute);
}

void StepCollectives::reduce_magnitudes(const Fp8Scales& scales, Stream& compute) {
  if (!scales.any()) return;
  reduction_->submit([&scales](Communicator& comm, Stream& stream) { scales.all_reduce(comm, stream); }, compute);
}

void StepCollectives::gather(const Bucket& bucket, Stream& compute) {
  if (!bucket.divided()) return;
  const auto slice = static_cast<std::size_t>(bucket.slice);
  for (const auto& [array, base] : {std::pair{Array::masters, memory_.weights()}, {Array::copies, memory_.copies()}}) {
    if (!bucket.whole(array)) continue;
    const DType dtype = plan_.type(array);
    std::byte* at = base + plan_.offset(array, bucket.in(array).at);
    const auto job = [at, slice, dtype](Communicator& comm, Stream& stream) {
      const auto span = span_of("all_gather", slice * size_of(dtype) * static_cast<std::size_t>(comm.size()));
      comm.all_gather(at, at, slice, dtype, stream);
    };
    reduction_->submit(job, compute);
  }
}

Reduction::Mark StepCollectives::reduce(const Window& window, std::byte* at, bool first, Stream& compute) {
  const DType dtype = plan_.type(Array::gradients);
  const Bucket& bucket = plan_.parameters.buckets[window.bucket];
  const auto slice = static_cast<std::size_t>(bucket.slice);
  std::byte* held = memory_.gradients() + plan_.offset(Array::gradients, bucket.in(Array::gradients).at);
  const auto job = [=, bytes = window.bytes, add = plan_.add_slice[window.bucket].get(),
                    own = at + plan_.offset(Array::gradients, bucket.in(Array::gradients).begin - bucket.begin)](
                       Communicator& comm, Stream& stream) {
    const auto span = span_of("reduce_scatter", bytes);
    comm.reduce_scatter(at, first ? held : at, slice, dtype, ReduceOp::sum, stream);
    if (!first) add->run(stream, {.a = held, .b = own, .out = held});
  };
  reduction_->submit(job, compute);
  return reduction_->mark();
}

Reduction::Mark StepCollectives::gather(const Window& window, std::byte* at, bool exchange, Stream& compute) {
  const DType dtype = plan_.type(window.array);
  const Bucket& bucket = plan_.parameters.buckets[window.bucket];
  const auto slice = static_cast<std::size_t>(bucket.slice);
  const std::byte* base = window.array == Array::masters ? memory_.weights() : memory_.copies();
  const std::byte* held = base + plan_.offset(window.array, bucket.in(window.array).at);
  const auto job = [=, this, bytes = window.bytes](Communicator& comm, Stream& stream) {
    if (exchange) {
      const auto span = span_of("all_gather", bytes);
      return comm.all_gather(held, at, slice, dtype, stream);
    }
    const std::size_t part = slice * size_of(dtype);
    for (std::size_t done = 0; done < bytes; done += part) device_.copy(at + done, held, part, stream);
  };
  reduction_->submit(job, compute);
  return reduction_->mark();
}

RunningAverage::RunningAverage(const StepPlan& plan, Device& device, const Communicator& comm)
    : plan_(plan), device_(device), before_(device.allocate(plan.layout.running_bytes)) {
  const auto& entries = plan.layout.running;
  const double ranks = comm.size(), later = comm.size() - 1 - comm.rank();
  const auto made = [&](const ops::ElementwiseDesc& desc) {
    auto op = plan.layout.ops.backend().make<ops::Elementwise>(desc);
    if (!op) throw UsageError("running statistics over ranks: " + op.reason());
    return op.take();
  };
  for (std::size_t first = 0; first < entries.size();) {
    std::size_t last = first;
    while (last + 1 < entries.size() && entries[last + 1].momentum == entries[first].momentum) ++last;
    const std::size_t begin = entries[first].offset, end = entries[last].offset + entries[last].bytes();
    const double decay = std::pow(1.0 - entries[first].momentum, static_cast<double>(plan.layout.options.accumulate));
    ops::ElementwiseDesc desc;
    desc.kind = ops::ElementwiseKind::combine;
    desc.in = desc.out = entries[first].dtype;
    desc.count = static_cast<std::int64_t>((end - begin) / size_of(desc.in));
    desc.alpha = std::pow(decay, later);
    desc.beta = -decay * desc.alpha;
    auto own = made(desc);
    desc.alpha = 1;
    desc.beta = std::pow(decay, ranks);
    runs_.push_back({begin, std::move(own), made(desc)});
    first = last + 1;
  }
}

void RunningAverage::before(const StepMemory& memory, Stream& stream) {
  device_.copy(before_.data(), memory.running(), plan_.layout.running_bytes, stream);
}

void RunningAverage::reduce(const StepMemory& memory, Communicator& comm, Stream& stream) {
  const auto each = [&](auto member) {
    for (const Run& run : runs_) {
      std::byte* now = memory.running() + run.offset;
      (run.*member)->run(stream, {.a = now, .b = saved(run.offset), .out = now});
    }
  };
  each(&Run::own);
  const DType dtype = plan_.layout.running.front().dtype;
  comm.all_reduce(memory.running(), memory.running(), plan_.layout.running_bytes / size_of(dtype), dtype, ReduceOp::sum,
                  stream);
  each(&Run::all);
}

}  // namespace assay::nn
