#include "workloads/nn/running_average.h"

#include "harness/core/error.h"

#include <cmath>

namespace assay::nn {

RunningAverage::RunningAverage(const StepPlan& plan, Device& device, const Communicator& comm)
    : plan_(plan), device_(device), before_(device.allocate(plan.layout.running_bytes)) {
  const auto& entries = plan.layout.running;
  const double ranks = comm.size(), later = comm.size() - 1 - comm.rank();
  const auto made = [&](const ops::ElementwiseDesc& desc) {
    auto op = plan.layout.ops.backend().elementwise(desc);
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
