#include "workloads/nn/running_average.h"

#include "workloads/nn/arrays.h"

#include <cmath>

namespace assay::nn {

void RunningAverage::before(const StepMemory& memory, Stream& stream) {
  before_.resize(plan_.layout.running_bytes);
  after_.resize(plan_.layout.running_bytes);
  device_.copy(before_.data(), memory.running(), before_.size(), stream);
}

void RunningAverage::reduce(const StepMemory& memory, Communicator& comm, Stream& stream) {
  device_.copy(after_.data(), memory.running(), after_.size(), stream);
  stream.synchronize();
  const auto each = [&](auto change) {
    for (const RunningStatistic& entry : plan_.layout.running) {
      const double decay = std::pow(1.0 - entry.momentum, static_cast<double>(plan_.layout.options.accumulate));
      old_.resize(static_cast<std::size_t>(entry.elements));
      now_.resize(old_.size());
      load(old_.data(), entry.dtype, before_.data() + entry.offset, entry.elements);
      load(now_.data(), entry.dtype, after_.data() + entry.offset, entry.elements);
      for (std::size_t i = 0; i < now_.size(); ++i) now_[i] = change(decay, old_[i], now_[i]);
      store(after_.data() + entry.offset, entry.dtype, now_.data(), entry.elements);
    }
    device_.copy(memory.running(), after_.data(), after_.size(), stream);
  };
  const int ranks = comm.size(), later = ranks - 1 - comm.rank();
  each([&](double decay, double old, double now) { return (now - decay * old) * std::pow(decay, later); });
  const DType dtype = plan_.layout.running.front().dtype;
  comm.all_reduce(memory.running(), memory.running(), after_.size() / size_of(dtype), dtype, ReduceOp::sum, stream);
  device_.copy(after_.data(), memory.running(), after_.size(), stream);
  stream.synchronize();
  each([&](double decay, double old, double sum) { return std::pow(decay, ranks) * old + sum; });
}

}  // namespace assay::nn
