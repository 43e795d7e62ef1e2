#include "suites/collective/groups.h"

#include "harness/comm/rank_hosts.h"
#include "harness/device/cpu/team.h"
#include "harness/sampling/groups.h"
#include "suites/collective/answer.h"
#include "suites/collective/call.h"
#include "suites/collective/layout.h"
#include "suites/collective/staging.h"
#include "suites/collective/world_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace assay::collective {

namespace {

class GroupsCase final : public Case {
 public:
  GroupsCase(const PairwiseParams& params, std::optional<Op> op)
      : params_(params), named_(op), op_(op.value_or(Op::all_reduce)) {}

  std::optional<std::string> prepare(Context& context) override {
    if (params_.rails && !named_) return "pairs and groups of hosts have no form among=rail";
    const std::string what = params_.rails ? fmt::format("{} among=rail", word_of(op_)) : groups_op;
    if (op_ == Op::send_recv || op_ == Op::all_to_all_v) return "there is no " + what;
    if (const auto why = why_unsupported(params_, what)) return why;
    if (const auto why = params_.rails ? choose_rails(context) : choose_groups(context)) return why;
    std::size_t most = 0;
    for (const auto& groups : groupings_)
      for (const std::vector<int>& group : groups) most = std::max(most, group.size());
    if (layout_in(most).count == 0)
      return fmt::format("{} bytes hold no element of {}{}", params_.bytes, assay::name_of(params_.dtype),
                         params_.rails ? fmt::format(" for each of {} ranks", most) : "");
    if (reduces(op_) && static_cast<int>(most) > max_ranks(params_.dtype))
      return fmt::format("sums over more than {} ranks are not exact in {}", max_ranks(params_.dtype),
                         assay::name_of(params_.dtype));
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    if (context.device.kind() == DeviceKind::cpu) team_.emplace(1);
    staging_.emplace(context.device);
    std::size_t send = 1, receive = 1, bytes = 0;
    for (const auto& groups : groupings_)
      for (const std::vector<int>& group : groups) {
        const Layout layout = layout_in(group.size());
        send = std::max(send, layout.send), receive = std::max(receive, layout.receive);
        bytes = std::max(bytes, layout.bytes);
      }
    send_ = context.device.allocate(send * size_of(params_.dtype));
    receive_ = context.device.allocate(receive * size_of(params_.dtype));
    context.outputs.protocol.batching = params_.batching;
    context.outputs.protocol.cache = Protocol::Cache::hot;
    context.outputs.protocol.data = "integers";
    context.outputs.choices["implementation"] = context.comm.implementation();
    context.outputs.labels["bytes_used"] = std::to_string(bytes);
    context.outputs.conditions["redop"] = reduces(op_) ? "sum" : "none";
  }

  void measure(Sampler& sampler) override {
    wrong_ = changed_ = {};
    sampler.rounds(static_cast<int>(groupings_.size()), [&](int index) { return round(index); });
    group_.reset();
    std::vector<RankGroup> measured;
    for (std::size_t index = 0; index < groupings_.size(); ++index)
      for (const std::vector<int>& group : groupings_[index]) {
        const auto& time = sampler.measurement().rounds[index][static_cast<std::size_t>(group.front())];
        const auto bytes = static_cast<double>(layout_in(group.size()).bytes);
        if (!time) continue;
        measured.push_back(
            {static_cast<int>(index), group, bytes * *bus_factor(op_, static_cast<int>(group.size())) / time->median});
      }
    context_->outputs.groups = std::move(measured);
  }

  void verify(Checks& checks) override {
    add_check(checks, context_->comm, "wrong_elements", wrong_);
    add_check(checks, context_->comm, "changed_inputs", changed_);
  }

  std::vector<Metric> metrics(const Measurement&) const override {
    std::vector<double> all;
    for (const RankGroup& group : context_->outputs.groups) all.push_back(group.busbw);
    return {value_metric("slowest_group_busbw", std::ranges::min(all), "B/s", Better::higher),
            value_metric("median_group_busbw", median(all), "B/s", Better::higher)};
  }

 private:
  Layout layout_in(std::size_t ranks) const {
    return layout_of(op_, params_.bytes, params_.dtype, static_cast<int>(ranks));
  }

  // One grouping with the ranks of each rail that several hosts have. Returns why there is none.
  std::optional<std::string> choose_rails(Context& context) {
    const std::vector<std::string> hosts = hosts_of_ranks(context.comm);
    if (auto why = why_no_rails(hosts, "among=all")) return why;
    std::vector<std::vector<int>> groups;
    std::map<std::string, std::size_t> seen;  // ranks by host, so far
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      const std::size_t number = seen[hosts[rank]]++;
      groups.resize(std::max(groups.size(), number + 1));
      groups[number].push_back(static_cast<int>(rank));
    }
    std::erase_if(groups, [](const std::vector<int>& group) { return group.size() == 1; });
    groupings_.assign(1, std::move(groups));
    return std::nullopt;
  }

  // Sets the ranks of each group. Returns why there is none.
  std::optional<std::string> choose_groups(Context& context) {
    const std::vector<std::string> hosts = hosts_of_ranks(context.comm);
    const bool one_host = std::ranges::adjacent_find(hosts, std::ranges::not_equal_to()) == hosts.end();
    std::vector<std::vector<int>> ranks;  // by host
    std::map<std::string, std::size_t> places;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      const std::size_t place = one_host ? rank : places.try_emplace(hosts[rank], places.size()).first->second;
      ranks.resize(std::max(ranks.size(), place + 1));
      ranks[place].push_back(static_cast<int>(rank));
    }
    groupings_.clear();
    for (const Grouping& grouping : random_groupings(ranks.size(), context.inputs.seed)) {
      auto& groups = groupings_.emplace_back();
      for (const std::vector<std::size_t>& members : grouping) {
        std::vector<int>& group = groups.emplace_back();
        for (const std::size_t host : members) group.insert(group.end(), ranks[host].begin(), ranks[host].end());
        std::ranges::sort(group);
      }
    }
    if (!groupings_.empty()) return std::nullopt;
    return fmt::format("groups need {} hosts, three groups of two; here are {}", min_grouped_hosts, ranks.size());
  }

  Sampler::Round round(int index) {
    const auto& groups = groupings_[static_cast<std::size_t>(index)];
    const int rank = context_->comm.rank();
    const auto own =
        std::ranges::find_if(groups, [&](const auto& group) { return std::ranges::binary_search(group, rank); });
    group_.reset();
    group_ = context_->comm.split(static_cast<int>(own - groups.begin()), rank);
    if (own == groups.end()) return {};  // its host waits
    layout_ = layout_in(own->size());
    answer_ = make_answer(op_, params_.dtype, layout_, group_->rank(), group_->size(), context_->inputs.seed);
    const std::size_t element = size_of(params_.dtype);
    staging_->write(send_.data(), layout_.send, element,
                    [&](void* part, std::size_t first, std::size_t count) { answer_->fill_send(part, first, count); });
    staging_->write(receive_.data(), layout_.receive, element,
                    [&](void* part, std::size_t, std::size_t count) { std::memset(part, 0xff, count * element); });
    return {group_.get(),
            [this](Stream& stream, int) {
              make_call(op_, *group_, send_.data(), receive_.data(), layout_, params_.dtype, stream);
            },
            [this](Stream&) { check(); }};
  }

  void check() {
    const std::size_t element = size_of(params_.dtype), at = answer_->corruptible(false);
    const bool corrupt = context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::wrong_sum);
    staging_->read(receive_.data(), layout_.receive, element,
                   [&](const void* part, std::size_t first, std::size_t count) {
                     if (corrupt && first <= at && at < first + count)
                       answer_->corrupt(static_cast<char*>(const_cast<void*>(part)) + (at - first) * element);
                     answer_->check_receive(wrong_, part, false, first, count);
                   });
    staging_->read(send_.data(), layout_.send, element, [&](const void* part, std::size_t first, std::size_t count) {
      answer_->check_send(changed_, part, first, count);
    });
  }

  PairwiseParams params_;
  std::optional<Op> named_;  // the op of rails
  Op op_;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  std::optional<Staging> staging_;
  Layout layout_;                                         // in the current group
  std::vector<std::vector<std::vector<int>>> groupings_;  // sorted ranks by grouping and group
  std::unique_ptr<Communicator> group_;                   // this rank's, in the current grouping
  std::unique_ptr<Answer> answer_;
  Wrong wrong_, changed_;
  Buffer send_, receive_;
};

}  // namespace

std::unique_ptr<Case> make_groups(const PairwiseParams& params, std::optional<Op> op) {
  return std::make_unique<GroupsCase>(params, op);
}

}  // namespace assay::collective
