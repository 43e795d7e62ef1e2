// Copies between GPUs that this process sees: of every pair, one way or both at once, or all pairs at once; with peer
// access or through the host.
#include "harness/core/error.h"
#include "harness/device/cpu/cpu_list.h"
#include "suites/transfer/cases.h"
#include "suites/transfer/device_copies.h"

#include <algorithm>

namespace assay::transfer {

namespace {

enum class AtOnce { one_way, both_ways, all_pairs };

// The meaning of a direction between GPUs.
struct Form {
  AtOnce at_once = AtOnce::one_way;
  bool access = true;
  bool write = false;
};
Form form_of(Direction direction) {
  switch (direction) {
    case Direction::p2p: return {};
    case Direction::p2p_staged: return {.access = false};
    case Direction::p2p_write: return {.write = true};
    case Direction::p2p_both: return {AtOnce::both_ways};
    case Direction::p2p_both_write: return {.at_once = AtOnce::both_ways, .write = true};
    case Direction::p2p_all: return {AtOnce::all_pairs};
    case Direction::p2p_all_write: return {.at_once = AtOnce::all_pairs, .write = true};
    case Direction::h2d:
    case Direction::d2h:
    case Direction::both:
    case Direction::d2d: break;
  }
  throw Error(fmt::format("{} is not between GPUs", word_of(direction)));
}

// Ways that copy at once, and what they measured.
struct Group {
  std::vector<PairWay> ways;
  PairResult result = {};
};

class PairCase final : public Case {
 public:
  explicit PairCase(const Params& params)
      : form_(form_of(params.choice<Direction>("direction"))),
        by_kernel_(params.choice<By>("by") == By::kernel),
        bytes_(static_cast<std::size_t>(params.integer("bytes"))) {}

  std::optional<std::string> prepare(Context& context) override {
    if (context.comm.size() > 1) return "one rank measures every pair of GPUs: run it on one rank";
    if (!form_.access && by_kernel_) return "without peer access no kernel can reach another GPU's memory";
    const auto copies = load_device_copies();
    if (copies->gpus() < 2) return "one GPU is visible, and a pair takes two";
    if (groups(*copies).empty())
      return fmt::format("none of the {} visible GPUs has access to another's memory{}", copies->gpus(),
                         form_.at_once == AtOnce::both_ways ? ", both ways" : "");
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    copies_ = load_device_copies();
    Protocol& protocol = context.outputs.protocol;
    protocol.form = Protocol::Form::procedure;
    protocol.cache = Protocol::Cache::none;
    protocol.data = "pattern";
    protocol.details["pairs"] = "all";
    context.outputs.conditions["counts"] = form_.at_once == AtOnce::one_way     ? "bytes that arrive"
                                           : form_.at_once == AtOnce::both_ways ? "bytes of both ways"
                                                                                : "bytes of all pairs";
    context.outputs.conditions["gpus"] = std::to_string(copies_->gpus());
  }

  // The record has the samples of the slowest pair, or of all pairs at once.
  void measure(Sampler& sampler) override {
    sampler.procedure([&] {
      groups_ = groups(*copies_);
      const Protocol& protocol = context_->outputs.protocol;
      for (Group& group : groups_) {
        PairOrder order{group.ways, bytes_, form_.access, form_.write, by_kernel_};
        order.seconds = protocol.max_seconds / static_cast<double>(groups_.size());
        order.samples = std::max(order.samples, protocol.min_samples);
        order.flip_a_bit = &group == &groups_.front() && context_->inject(Fault::bit_flip);
        group.result = copies_->measure(order);
        if (group.result.max_gated) sampler.limit_gate(*group.result.max_gated);
      }
      context_->outputs.labels["slowest_pair"] = slowest_pair();
      const PairResult& result = slowest().result;
      context_->outputs.labels["host_cpus"] = cpu_list_text(result.host_cpus);
      waited_.values = result.waited;
      if (!waited_.values.empty()) waited_.summary = summarize(waited_.values);
      return result.seconds;
    });
  }

  void verify(Checks& checks) override {
    double wrong = 0;
    std::vector<std::string> detail;
    each_way([&](const PairWay& way, const PairResult& result, std::size_t i) {
      wrong += static_cast<double>(result.wrong[i].count);
      const std::uint64_t kept = std::min<std::uint64_t>(result.wrong[i].count, Wrong::kept);
      for (std::uint64_t place = 0; place < kept; ++place)
        detail.push_back(fmt::format("{}: byte {}", name_of(way), result.wrong[i].place[place]));
    });
    checks.at_most("wrong_bytes", wrong, 0, detail);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    const auto bytes = static_cast<double>(bytes_);
    std::vector<Metric> metrics =
        figures(bytes_, bytes * static_cast<double>(slowest().ways.size()), measured, waited_);
    each_way([&](const PairWay& way, const PairResult& result, std::size_t i) {
      metrics.push_back(value_metric(fmt::format("bandwidth_{}_to_{}", way.from, way.to),
                                     bytes / median(result.by_way[i]), "B/s", Better::higher));
    });
    return metrics;
  }

 private:
  bool can_copy(const DeviceCopies& copies, const PairWay& way) const {
    if (way.from == way.to) return false;
    if (!form_.access) return true;
    return form_.write ? copies.can_access(way.from, way.to) : copies.can_access(way.to, way.from);
  }

  std::vector<Group> groups(const DeviceCopies& copies) const {
    std::vector<Group> groups;
    for (int from = 0; from < copies.gpus(); ++from)
      for (int to = 0; to < copies.gpus(); ++to) {
        const PairWay way{from, to}, back{to, from};
        if (!can_copy(copies, way)) continue;
        if (form_.at_once == AtOnce::both_ways) {
          if (from < to && can_copy(copies, back)) groups.push_back({{way, back}});
        } else if (form_.at_once == AtOnce::all_pairs && !groups.empty()) {
          groups.front().ways.push_back(way);
        } else {
          groups.push_back({{way}});
        }
      }
    return groups;
  }

  const Group& slowest() const {
    return *std::ranges::max_element(
        groups_, [](const Group& a, const Group& b) { return median(a.result.seconds) < median(b.result.seconds); });
  }
  std::string slowest_pair() const {
    const Group& group = slowest();
    if (form_.at_once == AtOnce::both_ways)
      return fmt::format("GPU {} and GPU {}", group.ways.front().from, group.ways.front().to);
    const auto& times = group.result.by_way;
    const auto at = std::ranges::max_element(times, [](const auto& a, const auto& b) { return median(a) < median(b); });
    return name_of(group.ways[static_cast<std::size_t>(at - times.begin())]);
  }
  static std::string name_of(const PairWay& way) { return fmt::format("GPU {} to GPU {}", way.from, way.to); }

  // Calls look(way, result of its group, its index there).
  template <typename Look>
  void each_way(const Look& look) const {
    for (const Group& group : groups_)
      for (std::size_t i = 0; i < group.ways.size(); ++i) look(group.ways[i], group.result, i);
  }

  Form form_;
  bool by_kernel_;
  std::size_t bytes_;
  Context* context_ = nullptr;
  std::unique_ptr<DeviceCopies> copies_;
  std::vector<Group> groups_;
  Measurement waited_;  // times of small copies of the slowest group
};

}  // namespace

std::unique_ptr<Case> make_pair_case(const Params& params) { return std::make_unique<PairCase>(params); }

}  // namespace assay::transfer
