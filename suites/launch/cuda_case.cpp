#include "suites/launch/cuda_case.h"

#include "harness/core/error.h"
#include "harness/core/module.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/near_node.h"

#include <algorithm>

namespace assay::launch {

namespace {

using Enqueue = void (*)(Stream&, unsigned* counter);

constexpr int graph_nodes = 100;

// The work of one sample, and how many launches it counts for. A sample takes about a millisecond of host time.
struct OpInfo {
  GpuOp op;
  int launches;    // per turn
  int turns;       // per sample
  bool wait_each;  // after each turn, else after the sample
};
constexpr OpInfo ops[] = {{GpuOp::kernel, 1, 1000, false},        {GpuOp::kernel_wait, 1, 100, true},
                          {GpuOp::graph, graph_nodes, 20, false}, {GpuOp::graph_wait, 1, 20, true},
                          {GpuOp::event, 1, 100, true},           {GpuOp::copy_h2d, 1, 100, true},
                          {GpuOp::copy_d2h, 1, 100, true}};

const OpInfo& info_of(GpuOp op) {
  return *std::ranges::find_if(ops, [op](const OpInfo& info) { return info.op == op; });
}

class CudaLaunchCase final : public Case {
 public:
  explicit CudaLaunchCase(const Params& params) : op_(params.choice<GpuOp>("op")), info_(info_of(op_)) {}

  void setup(Context& context) override {
    context_ = &context;
    device_ = &context.device;
    empty_ = Module::load("cuda").function<Enqueue>("assay_cuda_launch_empty");
    stream_ = device_->make_stream();
    begin_ = device_->make_event();
    end_ = device_->make_event();
    host_ = device_->allocate(sizeof(std::uint32_t), Memory::pinned);
    word_ = device_->allocate(sizeof(std::uint32_t));
    if (uses_graph()) {
      graph_ = capture(nullptr);
      counting_graph_ = capture(word_.as<unsigned>());
    }
    Protocol& protocol = context.outputs.protocol;
    protocol.form = Protocol::Form::steps;
    protocol.timer = "steady_clock";
    protocol.cache = Protocol::Cache::hot;
    protocol.data = "none";
    protocol.details["thread"] = cpu::RunsOnNode(device_->info().numa_node).place();
    protocol.details["launches"] = std::to_string(info_.launches * info_.turns);
    if (uses_graph()) protocol.details["nodes"] = std::to_string(graph_nodes);
  }

  void measure(Sampler& sampler) override {
    const cpu::RunsOnNode near(device_->info().numa_node);
    context_->outputs.labels["host_cpus"] = cpu_list_text(cpu::cpus_of_this_thread());
    sampler.steps([this](std::int64_t) { run(nullptr); });
  }

  // Repeats the calls with work that can be counted.
  void verify(Checks& checks) override {
    std::vector<std::string> detail;
    std::int64_t wrong = 0;
    const auto expect = [&](std::int64_t got, std::int64_t right, const char* what) {
      if (got == right) return;
      wrong += got > right ? got - right : right - got;
      detail.push_back(fmt::format("{}: {} instead of {}", what, got, right));
    };
    if (op_ == GpuOp::event) {
      expect(backwards_, 0, "events that ended before they began");
    } else if (op_ == GpuOp::copy_h2d || op_ == GpuOp::copy_d2h) {
      constexpr std::uint32_t sent = 0x600df00d;
      *host_.as<std::uint32_t>() = sent;
      device_->copy(word_.data(), host_.data(), sizeof sent, *stream_);
      stream_->synchronize();
      if (op_ == GpuOp::copy_d2h)
        *host_.as<std::uint32_t>() = 0;
      else
        device_->zero(word_.data(), word_.bytes(), *stream_);
      run(nullptr);
      std::uint32_t received = 0;
      device_->copy(&received, op_ == GpuOp::copy_d2h ? host_.data() : word_.data(), sizeof received, *stream_);
      stream_->synchronize();
      expect(received, sent, "the word that was copied");
    } else {
      device_->zero(word_.data(), word_.bytes(), *stream_);
      run(word_.as<unsigned>());
      std::uint32_t counted = 0;
      device_->copy(&counted, word_.data(), sizeof counted, *stream_);
      stream_->synchronize();
      expect(counted, std::int64_t{info_.turns} * (graph_ ? graph_nodes : 1), "kernels that ran");
    }
    checks.at_most("lost_or_repeated_tasks", static_cast<double>(wrong), 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    return {time_metric("latency", measured, static_cast<double>(info_.launches) * info_.turns)};
  }

 private:
  bool uses_graph() const { return op_ == GpuOp::graph || op_ == GpuOp::graph_wait; }

  std::unique_ptr<Graph> capture(unsigned* counter) {
    std::string why_not;
    auto graph = device_->capture(
        *stream_,
        [&] {
          for (int i = 0; i < graph_nodes; ++i) empty_(*stream_, counter);
        },
        why_not);
    if (!graph) throw Error("launch: no graph of empty kernels: " + why_not);
    return graph;
  }

  void run(unsigned* counter) {
    for (int turn = 0; turn < info_.turns; ++turn) {
      start(counter);
      if (info_.wait_each && op_ != GpuOp::event) stream_->synchronize();
    }
    if (!info_.wait_each) stream_->synchronize();
  }

  void start(unsigned* counter) {
    if (graph_) {
      (counter ? counting_graph_ : graph_)->launch(*stream_);
    } else if (op_ == GpuOp::event) {
      begin_->record(*stream_);
      end_->record(*stream_);
      end_->synchronize();
      backwards_ += end_->seconds_since(*begin_) < 0;
    } else if (op_ == GpuOp::copy_h2d) {
      device_->copy(word_.data(), host_.data(), sizeof(std::uint32_t), *stream_);
    } else if (op_ == GpuOp::copy_d2h) {
      device_->copy(host_.data(), word_.data(), sizeof(std::uint32_t), *stream_);
    } else {
      empty_(*stream_, counter);
    }
  }

  GpuOp op_;
  OpInfo info_;
  Context* context_ = nullptr;
  Device* device_ = nullptr;
  Enqueue empty_ = nullptr;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
  Buffer host_, word_;
  std::unique_ptr<Graph> graph_, counting_graph_;
  std::int64_t backwards_ = 0;
};

}  // namespace

std::unique_ptr<Case> make_cuda_case(const Params& params) { return std::make_unique<CudaLaunchCase>(params); }

}  // namespace assay::launch
