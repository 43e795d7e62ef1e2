#include "workloads/nn/program_windows.h"

#include <algorithm>

namespace assay::nn {

std::optional<Array> array_of(Region region) {
  switch (region) {
    case Region::weights: return Array::masters;
    case Region::copies: return Array::copies;
    case Region::gradients: return Array::gradients;
    default: return std::nullopt;
  }
}

namespace {

// Uninterrupted uses of one bucket's weights.
struct Run {
  std::size_t bucket = 0, first = 0, last = 0;
  bool used[array_kinds] = {};
};

std::vector<Run> runs_of_weights(const Program& program, const ParameterLayout& parameters) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (const Tensor tensor : program.instructions[i].reads) {
      const TensorInfo& info = program.tensors[static_cast<std::size_t>(tensor.id)];
      if (info.slot < 0 || info.region == Region::gradients) continue;
      const std::size_t bucket = parameters.bucket[info.parameter];
      if (runs.empty() || runs.back().bucket != bucket) runs.push_back({.bucket = bucket, .first = i, .last = i});
      runs.back().last = i;
      runs.back().used[static_cast<std::size_t>(*array_of(info.region))] = true;
    }
  return runs;
}

}  // namespace

void add_windows(Program& program, const StepPlan& plan) {
  const ParameterLayout& parameters = plan.parameters;
  for (TensorInfo& info : program.tensors) {
    const auto array = array_of(info.region);
    if (!array || parameters.bucket_of(info.parameter).whole(*array)) continue;
    info.slot = Window::slot_of(parameters.bucket[info.parameter], *array);
    info.offset = plan.offset(*array, parameters.begin[info.parameter] - parameters.bucket_of(info.parameter).begin);
  }
  const auto window = [&](std::size_t bucket, Array array, std::size_t first, std::size_t last) {
    const Bucket& whole = parameters.buckets[bucket];
    return Window{.bucket = bucket,
                  .array = array,
                  .begin = first,
                  .first = first,
                  .last = last,
                  .end = last,
                  .bytes = plan.offset(array, whole.end - whole.begin)};
  };
  std::size_t before = 0;
  for (const Run& run : runs_of_weights(program, parameters)) {
    for (const Array array : {Array::masters, Array::copies}) {
      if (!run.used[static_cast<std::size_t>(array)]) continue;
      program.gathers.push_back(window(run.bucket, array, run.first, run.last));
      program.gathers.back().begin = before;
    }
    before = run.first;
  }
  std::map<std::size_t, Window> reduced;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (const Tensor tensor : program.instructions[i].writes) {
      const TensorInfo& info = program.tensors[static_cast<std::size_t>(tensor.id)];
      if (info.slot < 0) continue;
      const std::size_t bucket = parameters.bucket[info.parameter];
      Window& reduction = reduced.try_emplace(bucket, window(bucket, Array::gradients, i, i)).first->second;
      reduction.last = i;
      if (plan.layout.partly_written[info.parameter]) reduction.clear = true;
    }
  for (const auto& [bucket, each] : reduced) program.reductions.push_back(each);
  std::ranges::sort(program.reductions, {}, &Window::last);
  for (std::size_t r = 0; r < program.reductions.size(); ++r)
    program.reductions[r].end =
        r + 1 < program.reductions.size() ? program.reductions[r + 1].last : program.instructions.size() - 1;
}

}  // namespace assay::nn
