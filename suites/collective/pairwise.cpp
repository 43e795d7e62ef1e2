#include "suites/collective/pairwise.h"

#include "harness/comm/rank_hosts.h"
#include "harness/device/cpu/team.h"
#include "harness/sampling/pairs.h"
#include "suites/collective/answer.h"
#include "suites/collective/layout.h"
#include "suites/collective/staging.h"
#include "suites/collective/world_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

namespace assay::collective {

namespace {

// Messages up to this size are bound by latency; reports use the same limit.
constexpr std::size_t small_message_bytes = 32 << 10;

class PairwiseCase final : public Case {
 public:
  explicit PairwiseCase(const PairwiseParams& params) : params_(params) {}

  std::optional<std::string> prepare(Context& context) override {
    if (context.comm.size() == 1) return "one rank has no peer to send to";
    if (const auto why = why_unsupported(params_, params_.rails ? rails_op : pairwise_op)) return why;
    if (params_.rails)
      if (const auto why = why_no_rails(hosts_of_ranks(context.comm), "op=pairwise")) return why;
    if (layout_of(Op::send_recv, params_.bytes, params_.dtype, context.comm.size()).count == 0)
      return fmt::format("{} bytes hold no element of {}", params_.bytes, assay::name_of(params_.dtype));
    return std::nullopt;
  }

  void setup(Context& context) override {
    context_ = &context;
    if (context.device.kind() == DeviceKind::cpu) team_.emplace(1);
    staging_.emplace(context.device);
    layout_ = layout_of(Op::send_recv, params_.bytes, params_.dtype, context.comm.size());
    small_ = layout_.bytes <= small_message_bytes;
    choose_members();
    if (params_.rails) context.outputs.moved = CaseOutputs::Moved();
    members_comm_ = context.comm.split(static_cast<int>(member_ >= 0 ? rail_ : rails_.size()), context.comm.rank());
    if (member_ >= 0) {
      send_ = context.device.allocate(layout_.bytes);
      receive_ = context.device.allocate(layout_.bytes);
      const auto answer = answer_from(context.comm.rank());
      staging_->write(send_.data(), layout_.send, size_of(params_.dtype),
                      [&](void* part, std::size_t first, std::size_t n) { answer->fill_send(part, first, n); });
    }
    context.outputs.protocol.batching = params_.batching;
    context.outputs.protocol.cache = Protocol::Cache::hot;
    context.outputs.protocol.data = "integers";
    context.outputs.protocol.details["direction"] = small_ ? "back and forth" : "one way at a time";
    context.outputs.choices["implementation"] = context.comm.implementation();
    context.outputs.labels["bytes_used"] = std::to_string(layout_.bytes);
    context.outputs.conditions["members"] = params_.rails    ? "every rank of each host, with those of its number"
                                            : several_hosts_ ? "one rank of each host"
                                                             : "every rank of the host";
  }

  void measure(Sampler& sampler) override {
    wrong_ = {};
    int rounds = 0;
    for (const Rail& rail : rails_) rounds = std::max(rounds, pairing_rounds(static_cast<int>(rail.ranks.size())));
    sampler.rounds(2 * rounds, [&](int index) { return round(index); });
    pair_.reset();
    times_.clear();
    for (const Rail& rail : rails_) times_.push_back(pair_times(sampler.measurement(), rail));
    if (context_->comm.rank() != 0) return;
    record_matrices();
    const Members members = several_hosts_ ? Members::hosts : Members::ranks;
    for (std::string& finding : name_slow(slowest_of_rails(), names_, members))
      context_->outputs.flags.push_back(std::move(finding));
  }

  void verify(Checks& checks) override {
    Wrong changed;
    if (member_ >= 0) {
      const auto answer = answer_from(context_->comm.rank());
      staging_->read(
          send_.data(), layout_.send, size_of(params_.dtype),
          [&](const void* part, std::size_t first, std::size_t n) { answer->check_send(changed, part, first, n); });
    }
    add_check(checks, context_->comm, "wrong_elements", wrong_);
    add_check(checks, context_->comm, "changed_inputs", changed);
  }

  std::vector<Metric> metrics(const Measurement& measured) const override {
    std::vector<double> all;
    for (const PairTimes& times : times_)
      for (const auto& row : times)
        for (const auto& time : row)
          if (time) all.push_back(time->median);
    const auto bytes = static_cast<double>(layout_.bytes);
    const double typical = median(all);
    // The record has the samples of the slowest pair.
    if (small_)
      return {time_metric("slowest_pair_latency", measured), value_metric("median_pair_latency", typical, "s")};
    return {rate_metric("slowest_pair_bandwidth", bytes, "B/s", measured),
            value_metric("median_pair_bandwidth", bytes / typical, "B/s", Better::higher)};
  }

 private:
  // Ranks that measure each other, and the place of each in names_.
  struct Rail {
    std::vector<int> ranks;
    std::vector<std::size_t> places;
  };

  static bool on_several_hosts(const std::vector<std::string>& hosts) {
    return std::ranges::adjacent_find(hosts, std::ranges::not_equal_to()) != hosts.end();
  }

  // The first rank of each host, or each with those of its number on other hosts; all ranks of a single host.
  void choose_members() {
    const std::vector<std::string> hosts = hosts_of_ranks(context_->comm);
    several_hosts_ = on_several_hosts(hosts);
    rails_.assign(1, {});
    names_.clear();
    std::map<std::string, std::pair<std::size_t, std::size_t>> seen;  // by host: its place, its ranks so far
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      const std::string name = several_hosts_ ? hosts[rank] : fmt::format("rank {}", rank);
      const auto [host, first] = seen.try_emplace(name, names_.size(), 0);
      if (first) names_.push_back(name);
      auto& [place, number] = host->second;
      if (!first && !params_.rails) continue;
      if (number == rails_.size()) rails_.emplace_back();
      Rail& rail = rails_[number];
      if (static_cast<int>(rank) == context_->comm.rank()) {
        rail_ = number;
        member_ = static_cast<int>(rail.ranks.size());
      }
      rail.ranks.push_back(static_cast<int>(rank));
      rail.places.push_back(place);
      ++number;
    }
  }

  std::unique_ptr<Answer> answer_from(int rank) const {
    return make_answer(Op::send_recv, params_.dtype, layout_, context_->comm.rank(), context_->comm.size(),
                       context_->inputs.seed, rank);
  }

  // Two measurements per round: from the lower member of each pair, then to it.
  Sampler::Round round(int index) {
    if (member_ < 0) return {};
    const auto members = static_cast<int>(rails_[rail_].ranks.size());
    if (index / 2 >= pairing_rounds(members)) return {};  // a rail that fewer hosts have
    const auto other = partner_of(member_, index / 2, members);
    if (index % 2 == 0) {
      pair_.reset();
      pair_ = members_comm_->split(other ? std::min(member_, *other) : member_, member_);
    }
    if (!other) return {};
    const bool first = (index % 2 == 0) == (member_ < *other);  // this rank sends first
    calls_ = 0;
    poison();
    return {pair_.get(),
            [this, first](Stream& stream, int) {
              const bool forth = !small_ || calls_++ % 2 == 0;
              message(stream, forth == first);
            },
            [this, first, other = *other](Stream&) {
              // A rank that only sends has nothing to check.
              if (!first || (small_ && calls_ > 1)) check_from(other);
            }};
  }

  void message(Stream& stream, bool sends) {
    const int other = 1 - pair_->rank();
    if (context_->outputs.moved)
      (sends ? context_->outputs.moved->sent : context_->outputs.moved->received) += static_cast<double>(layout_.bytes);
    if (sends)
      pair_->send(send_.data(), layout_.count, params_.dtype, other, stream);
    else
      pair_->receive(receive_.data(), layout_.count, params_.dtype, other, stream);
  }

  void poison() {
    const std::size_t element = size_of(params_.dtype);
    staging_->write(receive_.data(), layout_.receive, element,
                    [&](void* part, std::size_t, std::size_t count) { std::memset(part, 0xff, count * element); });
  }

  // Checks the last message received from that member.
  void check_from(int other) {
    const int sender = rails_[rail_].ranks[static_cast<std::size_t>(other)];
    const auto answer = answer_from(sender);
    const bool corrupt = context_->comm.rank() == context_->comm.size() - 1 && context_->inject(Fault::wrong_sum);
    Wrong wrong;
    staging_->read(
        receive_.data(), layout_.receive, size_of(params_.dtype),
        [&](const void* part, std::size_t first, std::size_t count) {
          const std::size_t at = answer->corruptible(false);
          if (corrupt && first <= at && at < first + count)
            answer->corrupt(static_cast<char*>(const_cast<void*>(part)) + (at - first) * size_of(params_.dtype));
          answer->check_receive(wrong, part, false, first, count);
        });
    if (wrong.count == 0) return;
    wrong_.count += wrong.count;
    wrong_.senders.insert(sender);
    if (wrong_.detail.size() < 3)
      wrong_.detail.push_back(fmt::format("from {}: {}", names_[rails_[rail_].places[static_cast<std::size_t>(other)]],
                                          wrong.detail.front()));
  }

  // Returns the times of the rail's members, in their order.
  static PairTimes pair_times(const Measurement& measured, const Rail& rail) {
    const auto members = static_cast<int>(rail.ranks.size());
    PairTimes times(rail.ranks.size(), std::vector<std::optional<RoundResult>>(rail.ranks.size()));
    for (int round = 0; round < pairing_rounds(members); ++round)
      for (int a = 0; a < members; ++a) {
        const auto b = partner_of(a, round, members);
        if (!b || *b < a) continue;
        const auto low = static_cast<std::size_t>(a), high = static_cast<std::size_t>(*b);
        const auto of = [&](int index) -> const std::optional<RoundResult>& {
          return measured.rounds[static_cast<std::size_t>(index)][static_cast<std::size_t>(rail.ranks[low])];
        };
        times[low][high] = of(2 * round);
        times[high][low] = of(2 * round + 1);
      }
    return times;
  }

  // Returns the slowest rail's time of every two names.
  PairTimes slowest_of_rails() const {
    PairTimes slowest(names_.size(), std::vector<std::optional<RoundResult>>(names_.size()));
    for (std::size_t number = 0; number < rails_.size(); ++number)
      for (std::size_t a = 0; a < rails_[number].places.size(); ++a)
        for (std::size_t b = 0; b < rails_[number].places.size(); ++b) {
          const auto& time = times_[number][a][b];
          auto& one = slowest[rails_[number].places[a]][rails_[number].places[b]];
          if (time && (!one || time->median > one->median)) one = time;
        }
    return slowest;
  }

  Matrix matrix_of(const PairTimes& times, std::vector<int> ranks) const {
    Matrix matrix{small_ ? "latency" : "bandwidth",
                  small_ ? "s" : "B/s",
                  small_ ? Better::lower : Better::higher,
                  std::move(ranks),
                  {}};
    for (const auto& row : times)
      for (const auto& time : row)
        matrix.values.push_back(!time    ? std::numeric_limits<double>::quiet_NaN()
                                : small_ ? time->median
                                         : static_cast<double>(layout_.bytes) / time->median);
    return matrix;
  }

  void record_matrices() {
    context_->outputs.matrix = matrix_of(slowest_of_rails(), rails_.front().ranks);
    for (std::size_t number = 0; params_.rails && number < rails_.size(); ++number)
      context_->outputs.rails.push_back(matrix_of(times_[number], rails_[number].ranks));
  }

  PairwiseParams params_;
  Context* context_ = nullptr;
  std::optional<cpu::Team> team_;
  std::optional<Staging> staging_;
  Layout layout_;
  bool small_ = false;
  bool several_hosts_ = false;
  std::vector<Rail> rails_;         // one, or as many as a host has ranks
  std::vector<std::string> names_;  // hosts, or the ranks of a single one
  std::size_t rail_ = 0;            // this rank's
  int member_ = -1;                 // and its index in it; -1: none
  std::unique_ptr<Communicator> members_comm_;
  std::unique_ptr<Communicator> pair_;
  std::int64_t calls_ = 0;  // in the current measurement
  Buffer send_;
  Buffer receive_;
  std::vector<PairTimes> times_;  // by rail
  Wrong wrong_;
};

}  // namespace

std::optional<std::string> why_unsupported(const PairwiseParams& params, std::string_view op) {
  if (params.in_place) return fmt::format("{} has no in-place form", op);
  if (params.batching == Protocol::Batching::graph) return fmt::format("{} times single calls, not graphs of them", op);
  if (params.registered)
    return fmt::format("{}: only the communicator of the whole world supports registered buffers", op);
  return std::nullopt;
}

std::optional<std::string> why_no_rails(const std::vector<std::string>& hosts, std::string_view same) {
  const std::size_t distinct = std::set<std::string>(hosts.begin(), hosts.end()).size();
  if (distinct == 1) return "one host has no rails to another";
  if (distinct == hosts.size()) return fmt::format("each host has one rank: {} measures the same", same);
  return std::nullopt;
}

std::unique_ptr<Case> make_pairwise(const PairwiseParams& params) { return std::make_unique<PairwiseCase>(params); }

namespace {

constexpr std::size_t max_named = 20;

std::string times_text(double times) { return fmt::format("{:.{}f}", times, times < 10 ? 2 : 0); }

}  // namespace

std::vector<std::string> name_slow(const PairTimes& times, const std::vector<std::string>& names, Members members) {
  std::vector<PairTime> all;
  for (std::size_t from = 0; from < times.size(); ++from)
    for (std::size_t to = 0; to < times.size(); ++to)
      if (times[from][to]) all.push_back({static_cast<int>(from), static_cast<int>(to), *times[from][to]});
  const SlowPairs slow = find_slow_pairs(all, static_cast<int>(times.size()), Ways::apart);
  const auto name = [&](int member) { return names[static_cast<std::size_t>(member)]; };
  const bool hosts = members == Members::hosts;
  std::vector<std::string> texts;
  for (const SlowMember& one : slow.members) {
    const char* way = one.sending && one.receiving ? "" : one.sending ? " in sending" : " in receiving";
    texts.push_back(fmt::format("slow {}{}: even its fastest link takes {} times as long as the median {}'s{}",
                                hosts ? "host " : "", name(one.member), times_text(one.times), hosts ? "host" : "rank",
                                way));
  }
  for (const SlowPair& one : slow.pairs)
    texts.push_back(fmt::format("slow link {} {} {}: {} times the median link's time{}", name(one.from),
                                one.both_ways ? "-" : "->", name(one.to), times_text(one.times),
                                one.both_ways ? ", both ways" : ", that way alone"));
  if (texts.size() > max_named) {
    const std::size_t more = texts.size() - max_named;
    texts.resize(max_named);
    texts.push_back(fmt::format("slow: {} more {} or links", more, hosts ? "hosts" : "ranks"));
  }
  return texts;
}

}  // namespace assay::collective
