#include "workloads/planning/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::planning {

namespace {

using architecture::Architecture;

constexpr std::int64_t max_ranks = std::int64_t{1} << 20;

// The largest number up to `asked` for which good() holds; 1 always does.
template <typename Good>
std::int64_t nearest_below(std::int64_t asked, const Good& good) {
  while (asked > 1 && !good(asked)) --asked;
  return asked;
}

bool divides_width(const Architecture& model, std::int64_t tp) {
  return std::ranges::all_of(model.kinds, [&](const architecture::Layer& layer) {
    return layer.attention.heads % tp == 0 && layer.attention.kv_heads % tp == 0 && layer.mlp_width % tp == 0 &&
           layer.expert_width % tp == 0;
  });
}

std::optional<std::string> problem_of_tensor(const Architecture& model, const Step& step, const Layout& layout) {
  const architecture::Attention& attention = model.layer(0).attention;
  if (!divides_width(model, layout.tp))
    return fmt::format("tp={}: must divide {} heads, {} of keys and values, and the width of MLPs; use tp={}",
                       layout.tp, attention.heads, attention.kv_heads,
                       nearest_below(std::min<std::int64_t>(layout.tp, attention.heads),
                                     [&](std::int64_t tp) { return divides_width(model, tp); }));
  if (layout.sp && layout.tp == 1)
    return "sp=true: divides the sequence between the ranks of tp, and tp=1 has none; use sp=false, or tp=2";
  if (layout.sp && step.micro_batch * step.seq % (layout.tp * layout.cp) != 0)
    return fmt::format("sp=true: tp={} must divide the {} tokens of a micro-batch; use seq={}", layout.tp,
                       step.micro_batch * step.seq,
                       std::max(step.seq / (layout.tp * layout.cp), std::int64_t{1}) * layout.tp * layout.cp);
  return std::nullopt;
}

std::optional<std::string> problem_of_pipeline(const Architecture& model, const Step& step, const Layout& layout) {
  if (layout.chunks > 1 && layout.pp == 1)
    return fmt::format("chunks={}: pieces of the stages of pp, and pp=1 has one stage; use chunks=1, or pp=2",
                       layout.chunks);
  if (model.layers() < layout.pp * layout.chunks) {
    const std::int64_t pp = std::min(layout.pp, model.layers());
    return fmt::format("pp={},chunks={}: the model has {} layers, fewer than pp x chunks; use pp={},chunks={}",
                       layout.pp, layout.chunks, model.layers(), pp, model.layers() / pp);
  }
  if (layout.chunks > 1 && step.accumulate % layout.pp != 0)
    return fmt::format(
        "chunks={}: the interleaved schedule needs accumulate to be a multiple of pp={}; use accumulate={}",
        layout.chunks, layout.pp, (step.accumulate / layout.pp + 1) * layout.pp);
  if (layout.pp > 1 && layout.zero >= 2)
    return fmt::format("zero={}: with pp={} gradients of all micro-batches are kept until the last; use zero=1",
                       layout.zero, layout.pp);
  return std::nullopt;
}

std::optional<std::string> problem_of_experts(const Architecture& model, const Layout& layout) {
  if (layout.ep == 1) return std::nullopt;
  const std::int64_t experts = model.experts();
  if (experts == 0) return fmt::format("ep={}: the model has no experts; use ep=1", layout.ep);
  const auto good = [&](std::int64_t ep) { return experts % ep == 0 && layout.copies() % ep == 0; };
  if (good(layout.ep)) return std::nullopt;
  return fmt::format("ep={}: must divide {} experts and dp x cp = {} ranks; use ep={}, or dp={}", layout.ep, experts,
                     layout.copies(), nearest_below(std::min(layout.ep, experts), good),
                     nearest_below(std::min(layout.ep, experts), [&](std::int64_t ep) { return experts % ep == 0; }));
}

}  // namespace

std::optional<std::string> problem_of(const Architecture& model, const Step& step, const Layout& layout) {
  for (const auto& [name, value] : {std::pair("dp", layout.dp),
                                    {"tp", layout.tp},
                                    {"pp", layout.pp},
                                    {"cp", layout.cp},
                                    {"ep", layout.ep},
                                    {"chunks", layout.chunks}})
    if (value < 1 || value > parallel::max_dp)
      return fmt::format("{}={}: must be from 1 to {}", name, value, parallel::max_dp);
  if (layout.zero < 0 || layout.zero > parallel::max_zero)
    return fmt::format("zero={}: the stages of ZeRO are 0 to {}; use zero={}", layout.zero, parallel::max_zero,
                       std::clamp(layout.zero, 0, parallel::max_zero));
  if (auto problem = problem_of_tensor(model, step, layout)) return problem;
  if (auto problem = problem_of_pipeline(model, step, layout)) return problem;
  if (auto problem = problem_of_experts(model, layout)) return problem;
  // Both ends of a sequence go to one rank, so that causal attention is equally much for all.
  if (layout.cp > 1 && (model.labels > 0 || step.seq % (2 * layout.cp) != 0))
    return fmt::format(
        "cp={}: each rank has two pieces of a sequence, and there are {} tokens; use cp={}", layout.cp, step.seq,
        model.labels > 0 ? 1 : nearest_below(layout.cp, [&](std::int64_t cp) { return step.seq % (2 * cp) == 0; }));
  if (layout.dp * layout.tp > max_ranks || layout.dp * layout.tp * layout.pp > max_ranks || layout.ranks() > max_ranks)
    return fmt::format("dp x tp x pp x cp is more than the {} ranks that can be planned; use dp={}", max_ranks,
                       std::max<std::int64_t>(1, max_ranks / (layout.tp * layout.pp) / layout.cp));
  return std::nullopt;
}

std::vector<Stage> stages_of(const Architecture& model, const Step& step, const Layout& layout) {
  std::vector<Stage> stages(static_cast<std::size_t>(layout.pp));
  const std::int64_t m = step.accumulate, p = layout.pp, v = layout.chunks;
  for (std::int64_t r = 0; r < p; ++r) {
    // Slots of Megatron's and PyTorch's schedules: warm-up forwards, and one more.
    const double slots =
        v == 1 ? real(std::min(m, p - r)) : real(std::min(m * v, 2 * (p - 1 - r) + (v - 1) * p + 1)) / real(v);
    stages[static_cast<std::size_t>(r)] = {.index = r,
                                           .layers = std::vector<std::int64_t>(model.kinds.size(), 0),
                                           .first = r == 0,
                                           .last = r == p - 1,
                                           .in_flight = std::max(slots, 1.0)};
  }
  const std::int64_t chunks = p * v, each = model.layers() / chunks, more = model.layers() % chunks;
  std::size_t layer = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t i = 0; i < each + (chunk < more ? 1 : 0); ++i)
      ++stages[static_cast<std::size_t>(chunk % p)].layers[model.order[layer++]];
  return stages;
}

double bubble_of(const Step& step, const Layout& layout) {
  const auto waits = static_cast<double>(layout.pp - 1);
  return waits / (static_cast<double>(layout.chunks * step.accumulate) + waits);
}

}  // namespace assay::planning
