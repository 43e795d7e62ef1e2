// Families for tests of plans: every kind of parameter, without cases.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// `toy` and `pair` run on any device, `gpu_only` on GPUs.
inline std::vector<Family> fake_families() {
  Family toy;
  toy.name = "toy";
  toy.summary = "every kind of parameter";
  toy.params = {
      axis::choice("op", {"read", "write", "copy"}).runs({"read", "write"}).doc("what"),
      axis::bytes("bytes", {4096}).sweeps({1024, 2048, 4096, 8192, 16384}).doc("size"),
      axis::integer("n", 1).range(1, 1e15).doc("a number"),
      axis::seconds("share", 0.5).range(0, 1).doc("a share"),
      axis::seconds("pause", 0).doc("a time"),
      axis::flag("on").doc("a switch"),
      axis::count("threads", {"all", "core"}).runs({"all"}).only(DeviceKind::cpu).doc("threads"),
      axis::choice("gpus", {"each", "together"}).runs({"each"}).only(DeviceKind::cuda).doc("GPUs"),
      axis::text("path", "").doc("a path"),
  };
  toy.estimate = [](const Params& params, const World&) {
    const auto bytes = static_cast<double>(params.integer("bytes"));
    return Estimate{.memory_bytes = 2 * bytes, .bytes = 3 * bytes, .flops = static_cast<double>(params.integer("n"))};
  };
  toy.make = [](const Params&) -> std::unique_ptr<Case> { return nullptr; };
  toy.devices = {DeviceKind::cpu, DeviceKind::cuda};
  toy.takes_one_rank = [](const Params& params) { return params.has("op") && params.word("op") == "copy"; };

  Family pair = toy;
  pair.name = "pair";
  pair.communicates = true;
  pair.params = {axis::integer("heads", 4).at_least(1).sweeps({1, 2, 3, 4, 5}).doc("heads"),
                 axis::integer("width", 64).at_least(1).doc("width"),
                 axis::integer("late", 0).at_least(0).omitted_by_default().doc("added later")};
  pair.estimate = [](const Params&, const World&) { return Estimate{}; };
  pair.conflict = [](const Params& params, const World&) -> std::optional<std::string> {
    if (params.integer("width") % params.integer("heads") == 0) return std::nullopt;
    return "heads do not divide the width";
  };

  Family gpu_only = toy;
  gpu_only.name = "gpu_only";
  gpu_only.params = {axis::bytes("bytes", {std::int64_t{1} << 50}).doc("size")};
  gpu_only.estimate = [](const Params&, const World&) { return Estimate{.memory_bytes = 1e18}; };
  gpu_only.devices = {DeviceKind::cuda};
  return {toy, pair, gpu_only};
}

}  // namespace assay
