// Times a plan's algorithms and caches the fastest.
#include "workloads/ops/cuda/blaslt_search.h"

#include "harness/core/error.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/known_choices.h"
#include "workloads/ops/cuda/trial.h"
#include "workloads/ops/trial_timer.h"

namespace assay::ops {

namespace {

class PlanTimer final : public CandidateTimer {
 public:
  PlanTimer(BlasPlan& plan, Device& device)
      : plan_(plan),
        device_(device),
        stream_(device.make_stream()),
        timer_(device, *stream_),
        ran_(plan.candidates()),
        arrays_(device, *stream_, plan.max_workspace_bytes()) {
    const BlasProduct& p = plan.product();
    const auto elements = [](std::int64_t rows, std::int64_t columns, std::int64_t stride) {
      return rows * (stride > 0 ? stride : columns);
    };
    args_.a =
        arrays_.array(p.a, elements(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.a_stride), "search a");
    args_.b =
        arrays_.array(p.b, elements(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.b_stride), "search b");
    const std::int64_t out = elements(p.m, p.n, p.out_stride);
    args_.out = zeros(out, p.out);
    if (p.bias) args_.bias = zeros(p.n, p.out);
    if (p.gelu != BlasGelu::none) args_.aux = zeros(out, p.out);
    if (p.sums) args_.sums = zeros(p.m, p.out);
    args_.workspace = arrays_.workspace();
  }

  std::optional<double> seconds(std::size_t candidate, int repetitions) override {
    plan_.choose(candidate);
    bool runs = true;
    const auto run = [&] { runs = runs && plan_.try_run(cuda::native(*stream_), args_) == CUBLAS_STATUS_SUCCESS; };
    const double seconds = timer_.seconds(run, repetitions, !ran_[candidate]);
    if (!runs) return std::nullopt;
    ran_[candidate] = true;
    return seconds;
  }

  std::optional<std::size_t> fastest(const SearchLimits& limits) {
    return timer_.comparison([&] { return find_fastest(ran_.size(), *this, limits); });
  }

 private:
  void* zeros(std::int64_t count, DType dtype) {
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
    void* const data = arrays_.keep(device_.allocate(bytes));
    device_.zero(data, bytes, *stream_);
    return data;
  }

  BlasPlan& plan_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  TrialTimer timer_;
  std::vector<bool> ran_;
  TrialArrays arrays_;
  BlasArgs args_;
};

}  // namespace

SearchResult choose_fastest(BlasPlan& plan, Device& device) {
  ASSAY_CHECK(plan.product().batch == 1, "cannot search for a batch of {}", plan.product().batch);
  const std::size_t offered = plan.candidates();
  SearchResult result{true, offered == 1      ? "the only one"
                            : by_heuristics() ? fmt::format("the first of {} by the heuristics", offered)
                                              : fmt::format("fastest of {} by time", offered)};
  const auto search = [&]() -> std::string {
    try {
      PlanTimer timer(plan, device);
      SearchLimits limits;
      if (device.info().emulated) limits.warmup_seconds = 0;
      const auto fastest = timer.fastest(limits);
      plan.choose(fastest.value_or(0));
      if (fastest) return plan.packed_algorithm();
      result = {false, fmt::format("cuBLASLt cannot run any of the {} algorithms it offers", offered)};
    } catch (const Error& error) {
      if (device.lost()) throw;
      plan.choose(0);
      result.how = fmt::format("by the heuristics: {}", error.what());
    }
    return "";
  };
  algorithms_of(device, blaslt_version_text())
      .find(
          plan.product().key(), [&](const std::string& packed) { return plan.choose_packed(packed); }, search);
  return result;
}

}  // namespace assay::ops
