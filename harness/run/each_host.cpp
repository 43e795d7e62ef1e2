#include "harness/run/each_host.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/record/json_reader.h"
#include "harness/run/execute.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace assay {

namespace {

constexpr std::size_t cases_per_message = 200;

// "mllog/x.log" of host n1 is "mllog/n1-x.log": hosts write the same names.
std::string file_of_host(const std::string& host, const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) throw Error(fmt::format("{} is no file that a worker may write", name));
  return name.substr(0, slash + 1) + host + "-" + name.substr(slash + 1);
}

}  // namespace

EachHost::EachHost(Agents& agents, const EachHostOrder& order, EachHostSinks sinks)
    : agents_(agents),
      order_(order),
      sinks_(std::move(sinks)),
      channel_(ChannelServer::Listen{.every_interface = true, .hosts = agents.own_addresses()}) {
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

void EachHost::start(std::size_t index) {
  Host& host = hosts_[index];
  host.heard = Clock::now();
  Variables variables{{"ASSAY_SUPERVISOR", channel_.address()},
                      {"ASSAY_TOKEN", channel_.token()},
                      {"ASSAY_RANK", std::to_string(index)},
                      {"ASSAY_SIZE", std::to_string(hosts_.size())},
                      {"ASSAY_HOST", host.name}};
  for (const char* name : {"ASSAY_CACHE", "ASSAY_HEARTBEAT_LIMIT", "ASSAY_LAUNCH_LIMIT"})
    if (const char* value = std::getenv(name)) variables[name] = value;
  if (!order_.cpus.empty()) variables["ASSAY_CPUS"] = fmt::format("{}", fmt::join(order_.cpus[index], ","));
  host.process = agents_.start(static_cast<int>(index), "each-host", variables);
}

std::vector<std::string> EachHost::shared_machine_flags() const {
  return order_.cpus.empty() ? std::vector<std::string>() : std::vector<std::string>{"hosts are one machine"};
}

void EachHost::send_order(std::size_t index) {
  const int rank = static_cast<int>(index);
  const auto before = order_.before.find(hosts_[index].name);
  if (before != order_.before.end())
    for (const Record& record : before->second) channel_.send(rank, {{"type", "before"}, {"record", record.to_json()}});
  const Json plan = order_.plan->expanded();
  const Json& cases = plan.at("cases");
  for (std::size_t first = 0; first < cases.size(); first += cases_per_message) {
    const auto from = cases.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = static_cast<std::ptrdiff_t>(std::min(cases_per_message, cases.size() - first));
    channel_.send(rank, {{"type", "plan"}, {"cases", Json(Json::array_t(from, from + count))}});
  }
  Json go = {{"type", "go"}, {"device", name_of(order_.device)}, {"share_gpu", order_.share_gpu}};
  go["plan"] = plan;
  go["plan"]["cases"] = Json::array();
  // Limits of the command line are no part of a plan's JSON.
  go["timeouts"] = Json::array();
  for (const PlannedCase& planned : order_.plan->cases) go["timeouts"].push_back(planned.timeout_seconds);
  go["labels"] = order_.labels.empty() ? Json::object() : Json(order_.labels);
  go["flags"] = shared_machine_flags();
  go["faults"] = Json::array();
  for (const Fault fault : order_.faults) go["faults"].push_back(name_of(fault));
  channel_.send(rank, go);
}

// What is wrong with a message is its host's affair; what is wrong with the directory ends the run.
template <typename Call>
void EachHost::sink(const Call& call) {
  try {
    call();
  } catch (...) {
    if (!broken_) broken_ = std::current_exception();
  }
}

void EachHost::keep(std::size_t index, Record record) {
  Host& host = hosts_[index];
  const auto found = host.left.find(record.identity().unplaced());
  if (found == host.left.end()) throw Error(fmt::format("a record of {}, which it was not asked for", record.key));
  for (RankResult& rank : record.ranks) rank.host = host.name;
  host.left.erase(found);
  ++done_;
  note(fmt::format("[{}/{}] {}: {}{}  {}  ({})", done_, all_, host.name, record.key,
                   record.world_ranks == 1 ? "" : fmt::format(" x {} ranks", record.world_ranks), headline(record),
                   format_seconds(host.key == record.key ? seconds_since(host.begun) : record.seconds)));
  sink([&] { sinks_.record(std::move(record)); });
}

void EachHost::take_message(std::size_t index, const Json& message) {
  Host& host = hosts_[index];
  const JsonReader reader(message, "");
  const std::string type = reader.text("type");
  if (type == "begin") {
    host.key = reader.text("key");
    host.begun = Clock::now();
  } else if (type == "record") {
    keep(index, Record::from_json(reader.object("record")));
  } else if (type == "host") {
    Json said = {{"name", host.name},
                 {"environment", reader.object("environment")},
                 {"findings", message.value("findings", Json::array())}};
    sink([&] { sinks_.host(std::move(said)); });
  } else if (type == "file") {
    const std::string name = file_of_host(host.name, reader.text("name")), text = reader.text("text");
    const bool anew = reader.flag("anew", false);
    sink([&] { sinks_.file(name, text, anew); });
  } else if (type == "note") {
    note(reader.text("text"));
  } else if (type == "abort") {
    give_up(index, reader.text("reason"));
  } else if (type == "done") {
    give_up(index, "it has ended without a record of this case");
    channel_.send(static_cast<int>(index), {{"type", "end"}});
  }
}

void EachHost::take(const ChannelServer::Event& event) {
  using Kind = ChannelServer::Event::Kind;
  if (event.rank < 0 || event.rank >= static_cast<int>(hosts_.size())) return;
  const auto index = static_cast<std::size_t>(event.rank);
  Host& host = hosts_[index];
  host.heard = Clock::now();
  switch (event.kind) {
    case Kind::refused: give_up(index, JsonReader(event.message, "").text("reason")); break;
    case Kind::closed: host.connected = false; break;
    case Kind::hello:
      host.connected = true;
      send_order(index);
      break;
    case Kind::message: try { take_message(index, event.message);
      } catch (const Error& error) {
        note(fmt::format("assay: channel: host {}: {}", host.name, error.what()));
      }
      break;
  }
}

void EachHost::give_up(std::size_t index, const std::string& why) {
  Host& host = hosts_[index];
  host.finished = true;
  if (host.left.empty()) return;
  note(fmt::format("assay: host {}: {}; {} of its cases have no record", host.name, why, host.left.size()));
  const std::map<Identity, std::size_t> left = host.left;
  for (std::size_t i = 0; i < order_.plan->cases.size(); ++i) {
    const PlannedCase& planned = order_.plan->cases[i];
    const Identity identity = identity_of(planned, order_.device);
    const auto found = left.find(identity);
    if (found == left.end() || found->second != i) continue;
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
        if (record.identity().unplaced() == identity) order.attempt = record.attempt + 1;
    Record record = blank_record(order, order_.device);
    for (int rank = 0; rank < planned.ranks; ++rank) record.ranks.push_back({rank, host.name, "", std::nullopt});
    record.status = Status::error;
    record.reason = fmt::format("host {}: {}", host.name, why);
    keep(index, std::move(record));
  }
}

void EachHost::watch() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.finished) continue;
    const double silent = seconds_since(host.heard);
    if (const std::string& lost = agents_.lost(static_cast<int>(i)); !lost.empty())
      give_up(i, lost);
    else if (const Agents::Remote& remote = agents_.remote(host.process); !host.connected && remote.status)
      give_up(i, fmt::format("its run ended{}{}", remote.printed.empty() ? "" : ": ", last_lines(remote.printed, 1)));
    else if (host.connected && silent > order_.heartbeat_limit_seconds)
      give_up(i, fmt::format("no sign of life for {:.3g} s", silent));
    else if (!host.connected && silent > order_.launch_limit_seconds)
      give_up(i, fmt::format("its run did not start within {:.3g} s", silent));
  }
}

void EachHost::pump() {
  std::vector<pollfd> others = {{signals_.fd(), POLLIN, 0}};
  agents_.add_fds(others);
  for (const ChannelServer::Event& event : channel_.wait(500, others)) take(event);
  for (const std::string& line : channel_.take_log()) note("assay: " + line);
  agents_.take();
  for (const int signal : signals_.take()) {
    if (interrupted_ && signal == SIGINT) ::_exit(static_cast<int>(ExitCode::no_data));
    if (!interrupted_) note(fmt::format("assay: interrupted by SIG{}; ending the hosts' runs", sigabbrev_np(signal)));
    interrupted_ = true;
  }
  watch();
  if (sinks_.go_on) sink(sinks_.go_on);
  if (broken_) std::rethrow_exception(broken_);
  tick();
}

bool EachHost::run() {
  started_ = Clock::now();
  channel_.expect(static_cast<int>(hosts_.size()));
  std::vector<int> used;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].finished) continue;
    start(i);
    used.push_back(static_cast<int>(i));
  }
  const auto at_work = [](const Host& host) { return !host.finished; };
  try {
    while (!interrupted_ && std::any_of(hosts_.begin(), hosts_.end(), at_work)) pump();
  } catch (...) {
    agents_.clear(used);
    throw;
  }
  agents_.clear(used);
  return !interrupted_;
}

// Every host that is at work, with what it measures, as far as the line goes.
void EachHost::tick() {
  if (!live_.shown()) return;
  const auto working = std::count_if(hosts_.begin(), hosts_.end(), [](const Host& host) { return !host.finished; });
  std::string line = fmt::format("[{}/{}] {} elapsed, {} hosts at work", done_, all_,
                                 format_seconds(seconds_since(started_)), working);
  for (const Host& host : hosts_)
    if (!host.finished) line += fmt::format("; {}: {}", host.name, host.key.empty() ? "starting" : host.key);
  live_.draw(std::move(line));
}

}  // namespace assay
