#include "workloads/nn/program_arena.h"

#include "harness/core/error.h"
#include "workloads/nn/planner.h"

namespace assay::nn {

void place_in_arena(Program& program) {
  std::vector<Lifetime> lifetimes;
  std::vector<std::int32_t> slot(program.tensors.size(), -1);
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const auto use = [&](Tensor tensor, bool write) {
      const auto id = static_cast<std::size_t>(tensor.id);
      const TensorInfo& info = program.tensors[id];
      if (info.region != Region::arena) return;
      if (slot[id] < 0) {
        ASSAY_CHECK(write, "{} is read before it is written", info.name);
        slot[id] = static_cast<std::int32_t>(lifetimes.size());
        lifetimes.push_back({info.bytes, i, i});
        owners.push_back(id);
      }
      lifetimes[static_cast<std::size_t>(slot[id])].last = i;
    };
    for (const Tensor tensor : instruction.writes) use(tensor, true);
    for (const Tensor tensor : instruction.reads) use(tensor, false);
  }
  const std::size_t tensors = lifetimes.size();
  std::vector<Window*> windows;
  for (auto* list : {&program.gathers, &program.reductions})
    for (Window& window : *list) {
      windows.push_back(&window);
      lifetimes.push_back({window.bytes, window.begin, window.end});
    }
  const ArenaPlan plan = plan_arena(lifetimes, lasting_alignment);
  program.arena_bytes = plan.bytes;
  program.workspace_at_peak = program.packed_at_peak = program.windows_at_peak = 0;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const bool at_peak = lifetimes[i].first <= plan.peak_at && lifetimes[i].last >= plan.peak_at;
    if (i >= tensors) {
      windows[i - tensors]->offset = plan.offsets[i];
      if (at_peak) program.windows_at_peak += aligned(lifetimes[i].bytes);
      continue;
    }
    TensorInfo& info = program.tensors[owners[i]];
    info.offset = plan.offsets[i];
    if (!at_peak) continue;
    if (info.purpose == Purpose::workspace) program.workspace_at_peak += aligned(info.bytes);
    if (info.purpose == Purpose::packed) program.packed_at_peak += aligned(info.bytes);
  }
}

}  // namespace assay::nn
