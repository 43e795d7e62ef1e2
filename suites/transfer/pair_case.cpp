// Copies between every pair of GPUs that this process sees, with peer access or through the host.
#include "harness/core/error.h"
#include "harness/machine/root.h"
#include "suites/transfer/cases.h"
#include "suites/transfer/device_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace assay::transfer {

namespace {

class PairCase final : public Case {
 public:
  explicit PairCase(const Params& params)
      : staged_(params.choice<Direction>("direction") == Direction::p2p_staged),
        by_kernel_(params.choice<By>("by") == By::kernel),
        bytes_(static_cast<std::size_t>(params.integer("bytes"))) {}

  std::optional<std::string> prepare(Context& context) override {
    if (context.comm.size() > 1) return "one rank measures every pair of GPUs: run it on one rank";
    if (staged_ && by_kernel_) return "without peer access no kernel can reach another GPU's memory";
    const auto copies = load_device_copies();
    const int gpus = copies->gpus();
    if (gpus < 2) return "one GPU is visible, and a pair takes two";
    if (staged_) return std::nullopt;
    for (int from = 0; from < gpus; ++from)
      for (int to = 0; to < gpus; ++to)
        if (from != to && copies->can_access(to, from)) return std::nullopt;
    return fmt::format("none of the {} visible GPUs has access to another's memory", gpus);
  }

  void setup(Context& context) override {
    context_ = &context;
    copies_ = load_device_copies();
    Protocol& protocol = context.outputs.protocol;
    protocol.form = Protocol::Form::procedure;
    protocol.cache = Protocol::Cache::none;
    protocol.data = "pattern";
    protocol.details["pairs"] = "all";
    context.outputs.conditions["counts"] = "bytes that arrive";
    context.outputs.conditions["gpus"] = std::to_string(copies_->gpus());
  }

  // The samples are those of the slowest pair.
  void measure(Sampler& sampler) override {
    sampler.procedure([this] {
      const int gpus = copies_->gpus();
      const double pairs = gpus * (gpus - 1);
      results_.clear();
      for (int from = 0; from < gpus; ++from)
        for (int to = 0; to < gpus; ++to) {
          if (from == to || (!staged_ && !copies_->can_access(to, from))) continue;
          PairOrder order{from, to, bytes_, !staged_, by_kernel_, context_->outputs.protocol.max_seconds / pairs};
          order.samples = std::max(order.samples, context_->outputs.protocol.min_samples);
          order.flip_a_bit = results_.empty() && context_->inject(Fault::bit_flip);
          results_[{from, to}] = copies_->measure(order);
        }
      const auto slowest = std::max_element(results_.begin(), results_.end(), [](const auto& a, const auto& b) {
        return median(a.second.seconds) < median(b.second.seconds);
      });
      context_->outputs.labels["slowest_pair"] =
          fmt::format("GPU {} to GPU {}", slowest->first.first, slowest->first.second);
      context_->outputs.labels["host_cpus"] = format_cpu_list(slowest->second.host_cpus);
      waited_.values = slowest->second.waited;
      if (!waited_.values.empty()) waited_.summary = summarize(waited_.values);
      return slowest->second.seconds;
    });
  }

  void verify(Checks& checks) override {
    double wrong = 0;
    std::vector<std::string> detail;
    for (const auto& [pair, result] : results_) {
      wrong += static_cast<double>(result.wrong.count);
      const std::uint64_t kept = std::min<std::uint64_t>(result.wrong.count, Wrong::kept);
      for (std::uint64_t i = 0; i < kept; ++i)
        detail.push_back(fmt::format("GPU {} to GPU {}: byte {}", pair.first, pair.second, result.wrong.place[i]));
    }
    checks.at_most("wrong_bytes", wrong, 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    std::vector<Metric> metrics = figures(bytes_, static_cast<double>(bytes_), measured, waited_);
    for (const auto& [pair, result] : results_)
      metrics.push_back(value_metric(fmt::format("bandwidth_{}_to_{}", pair.first, pair.second),
                                     static_cast<double>(bytes_) / median(result.seconds), "B/s", Better::higher));
    return metrics;
  }

 private:
  bool staged_;
  bool by_kernel_;
  std::size_t bytes_;
  Context* context_ = nullptr;
  std::unique_ptr<DeviceCopies> copies_;
  std::map<std::pair<int, int>, PairResult> results_;  // by sender and receiver
  Measurement waited_;                                 // of small copies of the slowest pair
};

}  // namespace

std::unique_ptr<Case> make_pair_case(const Params& params) { return std::make_unique<PairCase>(params); }

}  // namespace assay::transfer
