#include "harness/bench/session.h"

#include <algorithm>
#include <cmath>

namespace assay::bench {

namespace {

constexpr std::int64_t max_sample_count = 1000000;

}  // namespace

struct Session::Open {
  std::size_t index;
  std::unique_ptr<Case> work;
  Context context;
  Measurement measured = {};
  std::int64_t each = 0;  // repetitions (a loader's items) per sample in the last call; 0 before the first
};

Session::Session(const BenchRequest& request) : request_(request), comm_(make_self_communicator()) {}
Session::~Session() = default;

void Session::close() { open_.reset(); }

std::optional<std::string> Session::open(std::size_t index) {
  if (open_ && open_->index == index) return std::nullopt;
  close();
  if (!device_) device_ = request_.device();
  const PlannedCase& planned = request_.cases[index];
  auto open = std::make_unique<Open>(Open{index, planned.family->make(planned.params), {*device_, *comm_}});
  open->context.inputs = {
      .world = {.cpus = device_->info().compute_units}, .seed = planned.seed, .cache_dir = request_.cache_dir};
  if (auto reason = open->work->prepare(open->context)) return reason;
  planned.protocol.apply(open->context.outputs.protocol);
  open->work->setup(open->context);
  planned.protocol.apply(open->context.outputs.protocol);
  if (open->context.outputs.protocol.timer.empty()) open->context.outputs.protocol.timer = device_->timer();
  open_ = std::move(open);
  return std::nullopt;
}

std::vector<double> Session::measure(std::int64_t iterations) {
  // As many samples as cover the iterations, instead of the stop rule. Only the first call warms up. If flushing takes
  // longer than the work, the time limit ends a call earlier.
  Protocol protocol = open_->context.outputs.protocol;
  const std::int64_t each = std::max<std::int64_t>(open_->each, 1);
  protocol.min_samples = protocol.max_samples =
      static_cast<int>(std::min<std::int64_t>((iterations + each - 1) / each, max_sample_count));
  if (open_->each > 0) {
    protocol.warmup_seconds = 0;
    protocol.max_seconds += 2 * open_->measured.summary.median * static_cast<double>(iterations);
  }
  Sampler sampler(*device_, *comm_, protocol);
  open_->work->measure(sampler);
  open_->measured = sampler.measurement();
  const Measurement& measured = open_->measured;
  open_->each = measured.items > 0 ? std::llround(measured.items / static_cast<double>(measured.values.size()))
                                   : measured.repetitions;
  return spread(measured.values, open_->each, iterations);
}

std::optional<std::string> Session::fault() {
  Checks checks;
  open_->work->verify(checks);
  for (const Check& check : checks.all())
    if (!check.passed)
      return check.detail.empty() ? check.name : fmt::format("{}: {}", check.name, check.detail.front());
  return std::nullopt;
}

std::vector<Metric> Session::metrics() { return open_->work->metrics(open_->measured); }

std::string Session::label() const {
  std::string label;
  const CaseOutputs& outputs = open_->context.outputs;
  for (const char* name : {"implementation", "isa"})
    for (const auto* said : {&outputs.conditions, &outputs.choices, &outputs.labels})
      if (const auto found = said->find(name); found != said->end())
        label += (label.empty() ? "" : ", ") + found->second;
  return label;
}

std::vector<double> spread(const std::vector<double>& values, std::int64_t each, std::int64_t iterations) {
  ASSAY_CHECK(!values.empty(), "a case produced no sample");
  const auto wanted = static_cast<std::size_t>(iterations);
  const auto span = static_cast<std::size_t>(std::max<std::int64_t>(each, 1));
  std::vector<double> times;
  times.reserve(wanted);
  for (std::size_t i = 0; i < wanted; ++i) times.push_back(values[i / span % values.size()]);
  return times;
}

}  // namespace assay::bench
