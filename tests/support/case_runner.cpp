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
  const auto device = make_device(DeviceKind::cpu, 0);
  Context context{*device, comm, {comm.size(), 1, 1}, 1, {}, faults, {}, {}, {}};
  const auto limit = [&] {
    context.protocol.warmup_seconds = 0;
    context.protocol.min_samples = 7;
    context.protocol.max_samples = 7;
    context.protocol.max_seconds = 0.2;
  };
  const auto work = family.make(params);
  Outcome outcome;
  outcome.skipped = work->skip_reason(context);
  if (outcome.skipped) return outcome;
  limit();
  work->setup(context);
  limit();
  Sampler sampler(*device, comm, context.protocol);
  work->measure(sampler);
  outcome.measurement = sampler.measurement();
  Checks checks;
  work->verify(checks);
  outcome.checks = checks.all();
  outcome.metrics = work->metrics(outcome.measurement);
  outcome.protocol = context.protocol;
  outcome.labels = context.labels;
  outcome.flags = context.flags;
  outcome.matrix = context.matrix;
  return outcome;
}

}  // namespace assay::test
