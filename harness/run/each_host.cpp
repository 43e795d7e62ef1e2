#include "harness/run/each_host.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/device/settings.h"
#include "harness/json/members.h"
#include "harness/process/process.h"
#include "harness/record/flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace assay {

namespace {

constexpr std::size_t cases_per_message = 200;

// "mllog/x.log" of host n1 is "mllog/n1-x.log": every host writes the same names.
std::string file_of_host(const std::string& host, const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) throw Error(fmt::format("a worker may not write {}", in_quotes(name)));
  return name.substr(0, slash + 1) + host + "-" + name.substr(slash + 1);
}

std::unique_ptr<ChannelServer> server_for_hosts(const Agents& agents) {
  return std::make_unique<ChannelServer>(ChannelServer::Listen{.other_hosts = true, .hosts = agents.own_addresses()});
}

// "host b: why", unless `why` begins with the host already.
std::string of_host(const std::string& name, const std::string& why) {
  return why.starts_with(fmt::format("host {} ", name)) ? why : fmt::format("host {}: {}", name, why);
}

}  // namespace

EachHost::EachHost(Agents& agents, const EachHostOrder& order, RunSink& sink)
    : agents_(agents),
      order_(order),
      sink_(sink),
      loop_(server_for_hosts(agents), *this),
      signals_(
          "the hosts' runs", [this](const std::string& line) { live_.note(line); }, [] {}) {
  for (const AllocatedHost& allocated : agents_.allocation().hosts) {
    Host& host = hosts_.emplace_back();
    host.name = allocated.name;
    std::set<Identity> finished;
    if (const auto before = order_.before.find(host.name); before != order_.before.end())
      for (const Record& record : before->second)
        if (record.status != Status::error) finished.insert(record.identity().unplaced());
    for (std::size_t i = 0; i < order_.plan->cases.size(); ++i) {
      const Identity identity = identity_of(order_.plan->cases[i], order_.device);
      if (!finished.contains(identity)) host.left.emplace(identity, i);
    }
    all_ += host.left.size();
    host.finished = host.left.empty();
  }
}

void EachHost::start(int index) {
  Host& host = host_at(index);
  host.waiting_since = Clock::now();
  Variables variables{{"ASSAY_SUPERVISOR", loop_.server().address()},
                      {"ASSAY_TOKEN", loop_.server().token()},
                      {"ASSAY_RANK", std::to_string(index)},
                      {"ASSAY_SIZE", std::to_string(hosts_.size())},
                      {"ASSAY_HOST", host.name}};
  for (const char* name : {"ASSAY_CACHE", "ASSAY_GPUS", "ASSAY_HEARTBEAT_LIMIT", "ASSAY_LAUNCH_LIMIT"})
    if (const char* value = std::getenv(name)) variables[name] = value;
  for (const auto& [name, value] : inherited_variables())
    if (changes_figures(name)) variables.try_emplace(name, value);
  if (!order_.cpus.empty())
    variables["ASSAY_CPUS"] = fmt::format("{}", fmt::join(order_.cpus[static_cast<std::size_t>(index)], ","));
  host.process = agents_.start(index, "each-host", variables);
}

std::vector<std::string> EachHost::shared_machine_flags() const {
  return order_.cpus.empty() ? std::vector<std::string>() : std::vector{std::string(flag::one_machine)};
}

void EachHost::on_hello(int index, const message::Hello&) {
  Host& host = host_at(index);
  host.connected = true;
  ChannelServer& server = loop_.server();
  const auto before = order_.before.find(host.name);
  if (before != order_.before.end())
    for (const Record& record : before->second) server.send(index, message::Finished{.record = record});
  message::Go go;
  go.plan = order_.plan->expanded();
  const Json cases = std::exchange(go.plan["cases"], Json::array());
  for (std::size_t first = 0; first < cases.size(); first += cases_per_message) {
    const auto from = cases.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = static_cast<std::ptrdiff_t>(std::min(cases_per_message, cases.size() - first));
    server.send(index, message::PlanCases{Json(Json::array_t(from, from + count))});
  }
  go.device = name_of(order_.device);
  go.share_gpu = order_.share_gpu;
  // A plan's JSON does not hold the limits of the command line.
  for (const PlannedCase& planned : order_.plan->cases) go.timeouts.push_back(planned.timeout_seconds);
  go.labels = order_.labels;
  go.flags = shared_machine_flags();
  go.faults = json_of(order_.faults);
  server.send(index, go);
}

void EachHost::on_message(int index, const Message& message) {
  std::visit([&](const auto& one) { on(index, one); }, message);
}

void EachHost::on_closed(int index) {
  host_at(index).connected = false;
  host_at(index).waiting_since = Clock::now();
}

void EachHost::on_refused(const message::Refused& refusal) {
  if (refusal.rank < static_cast<int>(hosts_.size())) give_up(refusal.rank, FailureKind::refused, refusal.reason);
}

void EachHost::on_silent(int index, double seconds) {
  if (!host_at(index).finished)
    give_up(index, FailureKind::lost_host, fmt::format("no heartbeat for {:.3g} s", seconds));
}

std::string EachHost::name_of_peer(int index) const { return "host " + hosts_[static_cast<std::size_t>(index)].name; }

void EachHost::on(int index, const message::Begin& begin) {
  host_at(index).key = begin.key;
  host_at(index).begun = Clock::now();
}

void EachHost::on(int index, const message::FileText& file) {
  sink_.file(file_of_host(host_at(index).name, file.name), file.text, file.replace);
}

// A host cannot be trusted to send few, or short ones, or only such that come from it.
void EachHost::on(int index, const message::Note& sent) {
  constexpr int max_notes = 200, max_lines = 25;
  Host& host = host_at(index);
  if (++host.notes > max_notes) return;
  std::string text = last_lines(sent.text, max_lines);
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', end + 1)) text.insert(end + 1, "  ");
  live_.note(fmt::format("{}: {}", host.name, text));
  if (host.notes == max_notes) note(fmt::format("host {}: its further notes are not shown", host.name));
}

void EachHost::on(int index, const message::End& end) {
  give_up(index, FailureKind::exception, "it ended without a record of this case");
  loop_.server().send(index, end);
}

void EachHost::keep(int index, Record record) {
  Host& host = host_at(index);
  const auto found = host.left.find(record.identity().unplaced());
  if (found == host.left.end()) throw Error(fmt::format("an unexpected record of {}", in_quotes(record.key)));
  for (RankResult& rank : record.ranks) rank.host = host.name;
  if (record.failure && !record.failure->host.empty()) record.failure->host = host.name;
  host.left.erase(found);
  ++done_;
  live_.note(fmt::format("[{}/{}] {}: {}{}  {}  ({})", done_, all_, host.name, one_line(record.key, 400),
                         record.world_ranks == 1 ? "" : fmt::format(" x {} ranks", record.world_ranks),
                         one_line(headline(record)),
                         format_seconds(host.key == record.key ? seconds_since(host.begun) : record.seconds)));
  sink_.record(std::move(record));
}

void EachHost::give_up(int index, FailureKind kind, const std::string& why) {
  Host& host = host_at(index);
  host.finished = true;
  if (host.left.empty()) return;
  if (kind == FailureKind::lost_host) lost_[host.name] = of_host(host.name, why);
  note(fmt::format("{}; {} of its cases have no record", of_host(host.name, why), host.left.size()));
  std::set<std::size_t> left;
  for (const auto& [identity, i] : host.left) left.insert(i);
  for (const std::size_t i : left) {
    Record broken = broken_record(host, order_.plan->cases[i], why);
    broken.failure = {.kind = kind, .host = host.name};
    keep(index, std::move(broken));
  }
}

Record EachHost::broken_record(const Host& host, const PlannedCase& planned, const std::string& why) const {
  CaseOrder order;
  order.family = planned.family;
  order.params = planned.params;
  order.key = planned.key;
  order.world.ranks = planned.ranks;
  order.seed = planned.seed;
  order.labels = order_.labels;
  order.faults = order_.faults;
  order.flags = shared_machine_flags();
  if (const auto before = order_.before.find(host.name); before != order_.before.end())
    for (const Record& record : before->second)
      if (record.identity().unplaced() == identity_of(planned, order_.device)) order.attempt = record.attempt + 1;
  Record record = blank_record(order, order_.device);
  for (int rank = 0; rank < planned.ranks; ++rank) record.ranks.push_back({rank, host.name, "", std::nullopt});
  record.status = Status::error;
  record.reason = of_host(host.name, why);
  return record;
}

void EachHost::check_hosts() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const Host& host = hosts_[i];
    const int index = static_cast<int>(i);
    if (host.finished) continue;
    if (const std::string& lost = agents_.lost(index); !lost.empty()) {
      give_up(index, FailureKind::lost_host, lost);
    } else if (host.connected) {
      continue;
    } else if (const Agents::Remote& remote = agents_.remote(host.process); remote.status) {
      give_up(index, FailureKind::crashed,
              fmt::format("its run ended{}{}", remote.printed.empty() ? "" : ": ", last_lines(remote.printed, 1)));
    } else if (const double seconds = seconds_since(host.waiting_since); seconds > order_.launch_limit_seconds) {
      give_up(index, FailureKind::launch, fmt::format("its run did not start within {:.3g} s", seconds));
    }
  }
}

void EachHost::poll_round() {
  loop_.round(500, {&signals_, &agents_});
  check_hosts();
  sink_.keep_alive();
  draw();
}

bool EachHost::run() {
  started_ = Clock::now();
  loop_.server().expect(static_cast<int>(hosts_.size()));
  std::vector<int> used;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].finished) continue;
    start(static_cast<int>(i));
    used.push_back(static_cast<int>(i));
  }
  const auto at_work = [](const Host& host) { return !host.finished; };
  try {
    while (!signals_.interrupted() && std::any_of(hosts_.begin(), hosts_.end(), at_work)) poll_round();
  } catch (...) {
    agents_.clear(used);
    throw;
  }
  agents_.clear(used);
  return !signals_.interrupted();
}

// Every host at work and its current case.
void EachHost::draw() {
  if (!live_.shown()) return;
  const auto working = std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return !host.finished; });
  std::string line = fmt::format("[{}/{}] {} elapsed, {} hosts at work", done_, all_,
                                 format_seconds(seconds_since(started_)), working);
  for (const Host& host : hosts_)
    if (!host.finished) line += fmt::format("; {}: {}", host.name, host.key.empty() ? "starting" : host.key);
  live_.draw(line);
}

}  // namespace assay
