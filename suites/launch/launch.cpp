// The launch family and its two cases.
#include "suites/launch/launch.h"

#include "harness/device/cpu/team.h"
#include "suites/launch/cuda_case.h"
#include "suites/launch/handoff.h"

namespace assay {

namespace launch {

namespace {

enum class HostOp { fork_join, handoff_spin, handoff_block };
constexpr auto words(HostOp) { return std::to_array<std::string_view>({"fork_join", "handoff_spin", "handoff_block"}); }

// Entering and leaving a parallel region of all cores.
class ForkJoin final : public Case {
 public:
  std::optional<std::string> prepare(Context&) override {
    if (cpu::resolve_threads("all") < 2) return "this rank has one core, so there is nothing to fork";
    return std::nullopt;
  }

  void setup(Context& context) override {
    team_.emplace(cpu::resolve_threads("all"));
    counters_.resize(static_cast<std::size_t>(team_->size()));
    context.outputs.protocol.cache = Protocol::Cache::hot;
    context.outputs.protocol.data = "none";
    context.outputs.protocol.details["runtime"] = "OpenMP";
    context.outputs.choices["threads"] = std::to_string(team_->size());
  }

  void measure(Sampler& sampler) override {
    const std::function<void(int)> task = [this](int thread) { ++counters_[static_cast<std::size_t>(thread)].runs; };
    sampler.repeat([&](Stream&, int) {
      team_->run(task);
      ++launches_;
    });
  }

  void verify(Checks& checks) override {
    std::vector<std::string> detail;
    std::uint64_t wrong = 0;
    for (std::size_t thread = 0; thread < counters_.size(); ++thread)
      if (const std::uint64_t runs = counters_[thread].runs; runs != launches_) {
        wrong += runs > launches_ ? runs - launches_ : launches_ - runs;
        detail.push_back(fmt::format("thread {} ran {} times in {} regions", thread, runs, launches_));
      }
    checks.at_most("lost_or_repeated_tasks", static_cast<double>(wrong), 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override { return {time_metric("latency", measured)}; }

 private:
  struct alignas(128) Counter {
    std::uint64_t runs = 0;
  };
  std::optional<cpu::Team> team_;
  std::vector<Counter> counters_;
  std::uint64_t launches_ = 0;
};

// A task handed to the second thread of a team of two, and its answer. One repetition is `round_trips_` of them inside
// one parallel region, so that the cost of the region is negligible.
template <typename Handoff>
class HandoffCase final : public Case {
 public:
  explicit HandoffCase(std::uint64_t round_trips) : round_trips_(round_trips) {}

  std::optional<std::string> prepare(Context&) override {
    if (cpu::rank_cpus().size() < 2) return "this rank has one CPU, and handing a task over needs two";
    return std::nullopt;
  }

  void setup(Context& context) override {
    team_.emplace(2);
    context.outputs.protocol.cache = Protocol::Cache::hot;
    context.outputs.protocol.data = "none";
    context.outputs.protocol.details["round_trips"] = std::to_string(round_trips_);
    context.outputs.conditions["threads"] = "2";
    if (cpu::rank_cores() < 2) context.outputs.flags.push_back("handoff between SMT siblings");
  }

  void measure(Sampler& sampler) override {
    const std::function<void(int)> both = [this](int thread) { thread == 0 ? send_all() : answer_all(); };
    sampler.repeat([&](Stream&, int) { team_->run(both); });
  }

  void verify(Checks& checks) override {
    std::vector<std::string> detail;
    if (wrong_answers_)
      detail.push_back(fmt::format("{} of {} answers belonged to another task", wrong_answers_, sent_));
    if (wrong_tasks_) detail.push_back(fmt::format("{} of {} tasks came out of order", wrong_tasks_, answered_));
    if (sent_ != answered_) detail.push_back(fmt::format("{} tasks were sent and {} answered", sent_, answered_));
    checks.at_most("lost_or_repeated_tasks",
                   static_cast<double>(wrong_answers_ + wrong_tasks_ +
                                       (sent_ > answered_ ? sent_ - answered_ : answered_ - sent_)),
                   0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    return {time_metric("latency", measured, static_cast<double>(round_trips_))};
  }

 private:
  void send_all() {
    for (std::uint64_t i = 0; i < round_trips_; ++i) {
      const std::uint64_t task = ++sent_;
      wrong_answers_ += handoff_.send(task) != answer_of(task);
    }
  }
  void answer_all() {
    for (std::uint64_t i = 0; i < round_trips_; ++i) wrong_tasks_ += handoff_.answer_next() != ++answered_;
  }

  std::uint64_t round_trips_;
  std::optional<cpu::Team> team_;
  Handoff handoff_;
  alignas(128) std::uint64_t sent_ = 0;  // counted by the sender
  std::uint64_t wrong_answers_ = 0;
  alignas(128) std::uint64_t answered_ = 0;  // counted by the answering thread
  std::uint64_t wrong_tasks_ = 0;
};

std::unique_ptr<Case> make(const Params& params) {
  switch (params.choice<HostOp>("op")) {
    case HostOp::fork_join: return std::make_unique<ForkJoin>();
    case HostOp::handoff_spin: return std::make_unique<HandoffCase<SpinHandoff>>(10000);
    case HostOp::handoff_block: return std::make_unique<HandoffCase<BlockHandoff>>(500);
  }
  return nullptr;
}

}  // namespace
}  // namespace launch

Family launch_family() {
  const std::vector<std::string> host = all_words<launch::HostOp>(), gpu = all_words<launch::GpuOp>();
  std::vector<std::string> ops = host;
  ops.insert(ops.end(), gpu.begin(), gpu.end());
  Family family;
  family.name = "launch";
  family.summary = "latency of starting work on this rank's threads or its GPU";
  family.params = {
      axis::choice("op", ops)
          .only(DeviceKind::cpu, host)
          .runs(host)
          .only(DeviceKind::cuda, gpu)
          .runs_on_gpu(gpu)
          .doc("what is started"),
  };
  family.estimate = [](const Params&, const World&) { return Estimate{}; };
  family.make = launch::make;
  family.make_cuda = launch::make_cuda_case;
  family.devices = {DeviceKind::cpu, DeviceKind::cuda};
  return family;
}

}  // namespace assay
