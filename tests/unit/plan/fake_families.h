// Families for tests of plans: every kind of parameter, no case behind them.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// `toy` and `pair` on any device, `gpu_only` on GPUs.
inline std::vector<Family> fake_families() {
  Family toy;
  toy.name = "toy";
  toy.summary = "every kind of parameter";
  toy.params = {
      {"op",
       ParamType::choice,
       {std::string("read"), std::string("write")},
       {"read", "write", "copy"},
       {},
       {},
       "what",
       {}},
      {"bytes", ParamType::bytes, {std::int64_t{4096}}, {}, {}, {}, "size", {}},
      {"n", ParamType::integer, {std::int64_t{1}}, {}, 1.0, 1e15, "a number", {}},
      {"share", ParamType::real, {0.5}, {}, 0.0, 1.0, "a share", {}},
      {"pause", ParamType::seconds, {0.0}, {}, {}, {}, "a time", {}},
      {"on", ParamType::flag, {false}, {}, {}, {}, "a switch", {}},
      {"threads", ParamType::count, {std::string("all")}, {"all", "core"}, {}, {}, "threads", {DeviceKind::cpu}},
      {"gpus", ParamType::choice, {std::string("each")}, {"each", "together"}, {}, {}, "GPUs", {DeviceKind::cuda}},
      {"path", ParamType::text, {std::string()}, {}, {}, {}, "a path", {}},
  };
  toy.estimate = [](const Params& params, const World&) {
    const auto bytes = static_cast<double>(params.integer("bytes"));
    return Estimate{2 * bytes, 3 * bytes, static_cast<double>(params.integer("n")), 0};
  };
  toy.make = [](const Params&) -> std::unique_ptr<Case> { return nullptr; };
  toy.devices = {DeviceKind::cpu, DeviceKind::cuda};

  Family pair = toy;
  pair.name = "pair";
  pair.communicates = true;
  pair.params = {{"heads", ParamType::integer, {std::int64_t{4}}, {}, 1.0, {}, "heads", {}},
                 {"width", ParamType::integer, {std::int64_t{64}}, {}, 1.0, {}, "width", {}}};
  pair.estimate = [](const Params&, const World&) { return Estimate{}; };
  pair.conflict = [](const Params& params, const World&) -> std::optional<std::string> {
    if (params.integer("width") % params.integer("heads") == 0) return std::nullopt;
    return "heads do not divide the width";
  };

  Family gpu_only = toy;
  gpu_only.name = "gpu_only";
  gpu_only.params = {{"bytes", ParamType::bytes, {std::int64_t{1} << 50}, {}, {}, {}, "size", {}}};
  gpu_only.estimate = [](const Params&, const World&) { return Estimate{1e18, 0, 0, 0}; };
  gpu_only.devices = {DeviceKind::cuda};
  return {toy, pair, gpu_only};
}

}  // namespace assay
