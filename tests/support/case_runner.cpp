#include "tests/support/case_runner.h"

#include "harness/core/error.h"

namespace assay::test {

const Check& Outcome::check(const std::string& name) const {
  for (const Check& each : checks)
    if (each.name == name) return each;
  throw Error("no check " + name);
}

const Metric& Outcome::metric(const std::string& name) const {
  for (const Metric& each : metrics)
    if (each.name == name) return each;
  throw Error("no metric " + name);
}

Outcome run_case(const Family& family, const std::map<std::string, ParamValue>& changes, Communicator& comm,
                 const std::set<Fault>& faults) {
  Params params;
  for (const ParamSpec& spec : family.params) {
    const auto change = changes.find(spec.name);
    params.set(spec.name, change == changes.end() ? spec.defaults.at(0) : change->second);
  }
  if (family.complete) family.complete(params);
  const auto device = make_device(DeviceKind::cpu, 0);
  Context context{*device, comm};
  context.inputs = {.world = {.ranks = comm.size()}, .seed = 1, .faults = faults};
  const auto limit = [&] {
    context.outputs.protocol.warmup_seconds = 0;
    context.outputs.protocol.min_samples = 7;
    context.outputs.protocol.max_samples = 7;
    context.outputs.protocol.max_seconds = 0.2;
  };
  const auto work = family.make(params);
  Outcome outcome;
  outcome.skipped = work->prepare(context);
  if (outcome.skipped) return outcome;
  limit();
  work->setup(context);
  limit();
  Sampler sampler(*device, comm, context.outputs.protocol);
  work->measure(sampler);
  outcome.measurement = sampler.measurement();
  Checks checks;
  work->verify(checks);
  outcome.checks = checks.all();
  outcome.metrics = work->metrics(outcome.measurement);
  outcome.protocol = context.outputs.protocol;
  outcome.conditions = context.outputs.conditions;
  outcome.choices = context.outputs.choices;
  outcome.labels = context.outputs.labels;
  outcome.flags = context.outputs.flags;
  outcome.matrix = context.outputs.matrix;
  outcome.groups = context.outputs.groups;
  return outcome;
}

}  // namespace assay::test
