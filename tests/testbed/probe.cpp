// The probe family: cases that do one thing each.
#include "tests/testbed/probe.h"

#include "harness/core/error.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace assay {

namespace {

using std::chrono::duration;

// Takes memory until the process is ended, or has none left.
[[noreturn]] void take_all_memory() {
  for (std::vector<std::vector<char>> held;;) held.emplace_back(std::size_t{64} << 20, 'x');
}

// op, and which rank does it (-1: all); the others do what `ok` does.
class Probe final : public Case {
 public:
  explicit Probe(const Params& params)
      : op_(params.text("op")), rank_(params.integer("rank")), seconds_(params.real("seconds")) {}

  std::optional<std::string> prepare(Context& context) override {
    if (op_ == "skip" && (rank_ < 0 || rank_ == context.comm.rank())) return "asked to skip";
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    mine_ = rank_ < 0 || rank_ == context.comm.rank();
    context.outputs.choices["implementation"] = "probe";
    context.outputs.protocol.max_seconds = 0.05;
    context.outputs.protocol.warmup_seconds = 0;
    context.outputs.protocol.min_samples = 5;
    if (doing("setup-throw")) throw Error("thrown in setup on purpose");
    if (doing("setup-oom")) take_all_memory();
  }

  void measure(Sampler& sampler) override {
    if (doing("throw")) throw Error("thrown on purpose");
    if (doing("unknown-throw")) throw 7;
    if (doing("crash")) std::raise(SIGSEGV);
    if (doing("abort")) {
      std::fprintf(stderr, "last words of rank %d\n", context_->comm.rank());
      std::abort();
    }
    if (doing("exit")) ::_exit(3);
    if (doing("kill")) ::raise(SIGKILL);
    if (doing("stop")) ::raise(SIGSTOP);
    if (doing("blocked") && ::vfork() == 0)  // the parent is blocked uninterruptibly
      for (;;) ::pause();
    if (doing("noisy"))
      for (int i = 0; i < 20000; ++i) std::fprintf(stderr, "noise %d of rank %d\n", i, context_->comm.rank());
    if (doing("noisy")) std::abort();
    if (doing("hang"))
      for (;;) ::pause();
    if (doing("orphan") && ::fork() == 0)  // a child that outlives the worker
      for (;;) ::pause();
    if (doing("orphan")) std::abort();
    if (doing("oom")) take_all_memory();
    if (doing("oom-thread")) std::thread([] { std::vector<char> all(std::size_t{1} << 46); }).join();
    if (doing("sleep")) std::this_thread::sleep_for(duration<double>(seconds_));
    sampler.repeat({1, true}, [&](Stream&, int) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (context_->comm.size() > 1) context_->comm.barrier();
    });
    // Ranks whose peer broke hang here.
    context_->comm.barrier();
  }

  void verify(Checks& checks) override {
    if (doing("verify-oom")) take_all_memory();
    checks.that("held", !doing("fail"), doing("fail") ? std::vector<std::string>{"row 7"} : std::vector<std::string>{});
    checks.at_most("error", doing("fail") ? 2.0 : 0.5, 1.0);
  }

  std::vector<Metric> metrics(const Measurement& measurement) const override {
    return {rate_metric("throughput", 1e9, "FLOP/s", measurement), time_metric("latency", measurement)};
  }

 private:
  bool doing(const char* op) const { return mine_ && op_ == op; }

  std::string op_;
  std::int64_t rank_;
  double seconds_;
  bool mine_ = false;
  Context* context_ = nullptr;
};

}  // namespace

Family probe_family() {
  Family family;
  family.name = "probe";
  family.summary = "cases that hold, fail, break and hang on purpose";
  family.params = {
      axis::choice("op", {"ok",     "skip",      "fail", "setup-throw", "throw",      "unknown-throw", "crash",
                          "abort",  "exit",      "kill", "stop",        "blocked",    "noisy",         "hang",
                          "orphan", "setup-oom", "oom",  "verify-oom",  "oom-thread", "sleep"})
          .runs({"ok"})
          .doc("what to do"),
      axis::integer("rank", -1).range(-1, 1e6).doc("which rank does it; -1: every rank"),
      axis::seconds("seconds", 0.1).range(0, 1e6).doc("of sleep"),
      axis::integer("n", 0).range(0, 1e6).doc("to have many cases"),
  };
  family.estimate = [](const Params&, const World&) {
    return Estimate{.memory_bytes = 1024, .bytes = 1024, .flops = 1e6, .items = 1};
  };
  family.make = make_case_of<Probe>;
  family.devices = {DeviceKind::cpu};
  return family;
}

}  // namespace assay
