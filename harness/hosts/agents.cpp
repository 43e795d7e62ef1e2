// Hellos, clocks, orders and losses of a run's hosts.
#include "harness/hosts/agents.h"

#include "harness/channel/connect.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/text.h"
#include "harness/hosts/agent_starter.h"
#include "harness/record/json_reader.h"

#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

namespace assay {

namespace {

constexpr int clock_questions = 5;
constexpr double clock_limit_seconds = 1.0;
// Once one host is known to be missing, the others have so long to come.
constexpr double after_a_problem_seconds = 12;
constexpr double clear_limit_seconds = 8;
constexpr auto agent_heartbeat_period = std::chrono::seconds(2);
constexpr int killed = SIGKILL;  // as a wait status

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// A host is a connection, a pipe from what carries its agent, and a guest while MPI's daemon runs there.
void reserve_descriptors(std::size_t hosts) {
  rlimit limit{};
  const rlim_t needed = 3 * static_cast<rlim_t>(hosts) + 256;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<int> all_of(std::size_t count) {
  std::vector<int> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<int>(i));
  return all;
}

}  // namespace

Agents::Agents(Allocation allocation, AgentsOptions options)
    : allocation_(std::move(allocation)), options_(std::move(options)) {
  infos_.resize(allocation_.hosts.size());
  states_.resize(allocation_.hosts.size());
  listen();
  const bool ranks_are_hosts = allocation_.source != LaunchSource::environment;
  const int size = ranks_are_hosts ? static_cast<int>(states_.size()) : allocation_.size;
  channel_->expect(size);
  reserve_descriptors(states_.size());
  Variables variables = {{"ASSAY_SUPERVISOR", channel_->address()},
                         {"ASSAY_SIZE", std::to_string(size)},
                         {"ASSAY_DEVICE", options_.device}};
  for (const char* name : {"ASSAY_HEARTBEAT_LIMIT", "ASSAY_LAUNCH_LIMIT", "ASSAY_MODULE_PATH", "ASSAY_EMULATION"})
    if (const char* value = std::getenv(name)) variables[name] = value;
  starter_ = std::make_unique<AgentStarter>(allocation_, std::move(variables), channel_->token());
  const std::vector<int> everyone = all_of(states_.size());
  starter_->start(everyone);
  if (const std::vector<std::string> problems = wait_for(everyone, [] { return false; }); !problems.empty())
    throw Error(fmt::format("{}", fmt::join(problems, "\n")));
  if (!ranks_are_hosts) sort_by_rank();
}

// Hosts that came by themselves stand in the order in which they came.
void Agents::sort_by_rank() {
  std::vector<int> order = all_of(states_.size());
  std::sort(order.begin(), order.end(), [this](int a, int b) { return states_[at(a)].peer < states_[at(b)].peer; });
  auto hosts = allocation_.hosts;
  auto infos = infos_;
  auto states = states_;
  for (std::size_t i = 0; i < order.size(); ++i) {
    allocation_.hosts[i] = hosts[at(order[i])];
    infos_[i] = infos[at(order[i])];
    states_[i] = states[at(order[i])];
  }
}

Agents::~Agents() {
  for (std::size_t i = 0; i < states_.size(); ++i) send(static_cast<int>(i), {{"type", "end"}});
  channel_->expect(0);
}

void Agents::listen() {
  ChannelServer::Listen where;
  const auto elsewhere = [](const AllocatedHost& host) { return !host.here; };
  where.every_interface = std::any_of(allocation_.hosts.begin(), allocation_.hosts.end(), elsewhere);
  own_addresses_ = addresses_towards(allocation_.hosts);
  if (options_.server) {
    channel_ = std::move(options_.server);
    return;
  }
  if (allocation_.source == LaunchSource::environment) {
    const std::size_t colon = allocation_.supervisor.rfind(':');
    own_addresses_ = allocation_.supervisor.substr(0, colon);
    where.port = std::atoi(allocation_.supervisor.c_str() + colon + 1);
    where.token = allocation_.token;
  } else {
    where.token = random_token();
  }
  where.hosts = own_addresses_;
  channel_ = std::make_unique<ChannelServer>(where);
}

std::string Agents::name_of_host(int host) const {
  const std::string& name = allocation_.hosts[at(host)].name;
  return name.empty() ? fmt::format("of rank {}", host) : name;
}

std::optional<int> Agents::host_named(std::string_view name) const {
  for (std::size_t i = 0; i < allocation_.hosts.size(); ++i)
    if (allocation_.hosts[i].name == name) return static_cast<int>(i);
  return std::nullopt;
}

bool Agents::one_network(const std::vector<int>& hosts) const {
  return std::all_of(hosts.begin(), hosts.end(), [&](int host) {
    const HostInfo &one = infos_[at(host)], &first = infos_[at(hosts.front())];
    return !one.network.empty() && one.network == first.network && one.boot_id == first.boot_id;
  });
}

std::vector<std::string> Agents::clock_findings() const {
  std::vector<std::string> findings;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const double ahead = 1e-9 * static_cast<double>(states_[i].ahead_ns),
                 open = 0.5e-9 * static_cast<double>(states_[i].round_trip_ns);
    if (std::abs(ahead) - open > clock_limit_seconds)
      findings.push_back(fmt::format("the clock of host {} is {:.1f} s {} this one's; times in records are corrected",
                                     allocation_.hosts[i].name, std::abs(ahead), ahead > 0 ? "ahead of" : "behind"));
  }
  return findings;
}

// What keeps these hosts from taking part, as far as is known; a sentence each.
std::vector<std::string> Agents::problems_of(const std::vector<int>& hosts) const {
  std::vector<std::string> problems;
  for (const auto& [rank, reason] : refused_) problems.push_back(reason);
  for (const int host : hosts) {
    if (states_[at(host)].ready || refused_.contains(host)) continue;
    if (const std::string words = starter_->ended(host); !words.empty())
      problems.push_back(fmt::format("host {} cannot be reached: {}", name_of_host(host), words));
  }
  return problems;
}

std::vector<std::string> Agents::wait_for(const std::vector<int>& hosts, const std::function<bool()>& stop) {
  refused_.clear();
  const auto ready = [this](int host) { return states_[at(host)].ready; };
  const auto begin = Clock::now();
  std::optional<Clock::time_point> first_problem;
  const auto since = [](Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); };
  take_until(options_.start_limit_seconds, [&] {
    const std::size_t problems = problems_of(hosts).size();
    if (problems > 0 && !first_problem) first_problem = Clock::now();
    const auto come = static_cast<std::size_t>(std::count_if(hosts.begin(), hosts.end(), ready));
    return come + problems >= hosts.size() || (first_problem && since(*first_problem) > after_a_problem_seconds) ||
           stop();
  });
  std::vector<std::string> problems = problems_of(hosts);
  std::string missing;
  for (const int host : hosts)
    if (!ready(host) && !refused_.contains(host) && starter_->ended(host).empty())
      missing += (missing.empty() ? "" : ", ") + name_of_host(host);
  if (problems.empty() && !missing.empty()) {
    problems.push_back(fmt::format("host {} has not answered within {:.3g} s", missing, since(begin)));
    if (starter_->passive())
      problems.back() += fmt::format(": it must run the same command with ASSAY_SUPERVISOR={} and the same ASSAY_TOKEN",
                                     allocation_.supervisor);
  }
  return problems;
}

bool Agents::bring_back(const std::vector<int>& hosts, const std::function<bool()>& stop) {
  std::vector<int> gone, silent;
  for (const int host : hosts) {
    if (lost(host).empty()) continue;
    gone.push_back(host);
    if (states_[at(host)].peer < 0) silent.push_back(host);
  }
  if (gone.empty()) return true;
  std::vector<std::string> problems;
  try {
    starter_->start(silent);
    problems = wait_for(gone, stop);
  } catch (const Error& error) {
    problems = {error.what()};
  }
  std::erase_if(gone, [this](int host) { return states_[at(host)].ready; });
  if (gone.empty()) return true;
  if (stop()) return false;
  for (const int host : gone) {
    State& state = states_[at(host)];
    const std::vector<std::string> own = problems_of({host});
    state.given_up = true;
    state.lost += fmt::format("; {}", fmt::join(own.empty() ? problems : own, "; "));
    if (options_.note) options_.note(fmt::format("{}; the run goes on without it", state.lost));
  }
  return false;
}

void Agents::add_fds(std::vector<pollfd>& fds) const {
  channel_->add_fds(fds);
  starter_->add_fds(fds);
}

bool Agents::take_until(double seconds, const std::function<bool()>& until) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    take();
    if (until()) return true;
    if (Clock::now() >= end) return false;
    std::vector<pollfd> fds;
    add_fds(fds);
    ::poll(fds.data(), fds.size(), 50);
  }
}

void Agents::take() {
  std::vector<pollfd> none;
  // Who has not been heard here for long may have spoken all the same.
  const auto before = taken_;
  for (auto events = channel_->wait(0, none); !events.empty(); events = channel_->wait(0, none))
    for (const ChannelServer::Event& event : events) take_event(event);
  for (const std::string& line : channel_->take_log())
    if (options_.note) options_.note(line);
  starter_->take();
  taken_ = Clock::now();
  if (taken_ - before < agent_heartbeat_period) heartbeats();
}

void Agents::heartbeats() {
  const auto now = Clock::now();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    const double limit = connection_limit();
    if (state.peer >= 0 && std::chrono::duration<double>(now - state.heard).count() > limit)
      lose(static_cast<int>(i), fmt::format("it gave no sign of life for {:.3g} s", limit));
  }
  if (now - said_ < agent_heartbeat_period) return;
  said_ = now;
  for (std::size_t i = 0; i < states_.size(); ++i) send(static_cast<int>(i), {{"type", "heartbeat"}});
}

bool Agents::send(int host, const Json& message) {
  const int peer = states_[at(host)].peer;
  return peer >= 0 && channel_->send(peer, message);
}

int Agents::host_of(int peer) const {
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (states_[i].peer == peer) return static_cast<int>(i);
  return -1;
}

void Agents::take_event(const ChannelServer::Event& event) {
  using Kind = ChannelServer::Event::Kind;
  try {
    const int host = host_of(event.rank);
    if (event.kind == Kind::refused) {
      const JsonReader refusal(event.message, "");
      refused_[refusal.small("rank", 0)] = refusal.text("reason");
    } else if (event.kind == Kind::hello) {
      take_hello(event.rank, event.message);
    } else if (event.kind == Kind::closed && host >= 0) {
      lose(host, "its agent ended");
    } else if (event.kind == Kind::closed) {
      const auto guest = guests_.find(event.rank);
      if (guest == guests_.end()) return;
      const int id = guest->second;
      guests_.erase(guest);
      if (!remotes_[id].status) send(remotes_[id].host, {{"type", "stop"}, {"id", id}});
    } else if (host >= 0) {
      states_[at(host)].heard = Clock::now();
      take_message(host, event.message);
    } else {
      take_guest(event.rank, event.message);
    }
  } catch (const std::exception& error) {
    if (options_.note) options_.note(fmt::format("channel: agent {}: {}", event.rank, error.what()));
  }
}

// Agents say their number, except under srun and in an environment of ranks, where they are known by their names and
// by the order of their ranks.
void Agents::take_hello(int peer, const Json& message) {
  const JsonReader hello(message, "");
  if (hello.text("role") != "agent") return;
  const std::string name = hello.text("host");
  int host = peer;
  if (allocation_.source == LaunchSource::slurm) {
    host = host_named(name).value_or(-1);
  } else if (allocation_.source == LaunchSource::environment) {
    host = host_named(name).value_or(-1);
    for (std::size_t i = 0; i < states_.size() && host < 0; ++i)
      if (allocation_.hosts[i].name.empty()) host = static_cast<int>(i);
  }
  std::string why;
  if (host < 0 || at(host) >= states_.size())
    why = fmt::format("host {} is not of this run", one_line(name));
  else if (states_[at(host)].peer >= 0)
    why = fmt::format("two agents call their host {}: give them names by ASSAY_HOST", one_line(name));
  else if (const std::string plan = hello.text("plan");
           !plan.empty() && !options_.plan.empty() && plan != options_.plan)
    why = fmt::format("plan mismatch: host {} was given {}, the supervisor {}", one_line(name), one_line(plan),
                      options_.plan);
  if (!why.empty()) {
    refused_[peer] = why;
    channel_->send(peer, {{"type", "refused"}, {"reason", why}});
    channel_->part_with(peer);
    return;
  }
  if (allocation_.hosts[at(host)].name.empty()) allocation_.hosts[at(host)].name = name;
  State fresh;
  fresh.peer = peer;
  fresh.heard = Clock::now();
  // One that was lost is so until it is ready.
  State& state = states_[at(host)];
  fresh.lost = std::move(state.lost);
  fresh.given_up = state.given_up;
  state = std::move(fresh);
}

void Agents::ask_clock(int host) { send(host, {{"type", "clock"}, {"sent", wall_clock_ns()}}); }

void Agents::take_clock(int host, const Json& message) {
  const JsonReader reader(message, "");
  State& state = states_[at(host)];
  const std::int64_t now = wall_clock_ns(), sent = reader.integer("sent", 0);
  // The quickest answer says it most exactly.
  if (state.clocks_asked == 0 || now - sent < state.round_trip_ns) {
    state.round_trip_ns = now - sent;
    state.ahead_ns = reader.integer("wall", 0) - (sent + state.round_trip_ns / 2);
  }
  state.ready = ++state.clocks_asked >= clock_questions;
  if (!state.ready) return ask_clock(host);
  if (!state.lost.empty() && options_.note) options_.note(fmt::format("host {} is back", name_of_host(host)));
  state.lost.clear();
  state.given_up = false;
}

void Agents::take_message(int host, const Json& message) {
  const JsonReader reader(message, "");
  const std::string type = reader.text("type");
  if (type == "host") {
    infos_[at(host)] = host_info_from(message);
    infos_[at(host)].name = allocation_.hosts[at(host)].name;
    ask_clock(host);
  } else if (type == "clock") {
    take_clock(host, message);
  } else if (type == "cleared") {
    states_[at(host)].cleared = reader.small("id", 0);
  } else if (type == "output" || type == "ended") {
    const int id = reader.small("id", 0);
    const auto remote = remotes_.find(id);
    if (remote == remotes_.end() || remote->second.host != host) return;
    if (type == "ended") return end_remote(id, static_cast<int>(reader.integer("status", 0)));
    const std::string text = reader.text("text");
    keep_tail(remote->second.printed, text);
    for (const auto& [number, started] : guests_) {
      if (started != id) continue;
      keep_tail(shells_printed_, text);
      channel_->send(number, {{"type", "output"}, {"text", text}});
    }
  }
}

void Agents::take_guest(int number, const Json& message) {
  const JsonReader reader(message, "");
  if (reader.text("type") != "shell" || guests_.contains(number)) return;
  const std::string name = reader.text("target");
  const std::optional<int> host = host_named(name);
  std::string why;
  if (!shells_)
    why = "no daemon is expected now";
  else if (!host)
    why = fmt::format("host {} is not of this run", one_line(name));
  else
    why = lost(*host);
  if (!why.empty()) {
    channel_->send(number, {{"type", "output"}, {"text", "assay: " + why + "\n"}});
    channel_->send(number, {{"type", "ended"}, {"status", 255 << 8}});
    return;
  }
  Json order = {{"command", reader.text("command")}, {"variables", Json::object()}};
  guests_[number] = next_id_;
  start(*host, std::move(order));
}

int Agents::start(int host, Json order) {
  const int id = next_id_++;
  remotes_[id] = {host, {}, std::nullopt};
  order["type"] = "start";
  order["id"] = id;
  if (!send(host, order)) end_remote(id, killed);
  return id;
}

int Agents::start(int host, const std::string& subcommand, const Variables& variables) {
  return start(host, {{"subcommand", subcommand}, {"variables", variables}});
}

void Agents::end_remote(int id, int status) {
  Remote& remote = remotes_[id];
  if (remote.status) return;
  remote.status = status;
  for (const auto& [number, started] : guests_)
    if (started == id) channel_->send(number, {{"type", "ended"}, {"status", status}});
}

void Agents::lose(int host, const std::string& why) {
  State& state = states_[at(host)];
  if (state.peer < 0) return;
  channel_->part_with(state.peer);
  state.peer = -1;
  state.ready = false;
  const std::string words = starter_->ended(host);
  state.lost =
      fmt::format("host {} is lost: {}{}", name_of_host(host), why, words.empty() ? "" : fmt::format(" ({})", words));
  for (auto& [id, remote] : remotes_)
    if (remote.host == host) end_remote(id, killed);
}

void Agents::clear(const std::vector<int>& hosts) {
  const int order = next_id_++;
  std::set<int> waited;
  for (const int host : hosts)
    if (send(host, {{"type", "clear"}, {"id", order}})) waited.insert(host);
  take_until(clear_limit_seconds, [&] {
    return std::all_of(waited.begin(), waited.end(),
                       [&](int host) { return states_[at(host)].cleared >= order || states_[at(host)].peer < 0; });
  });
  // What does not even end its processes is of no more use.
  for (const int host : waited)
    if (states_[at(host)].cleared < order)
      lose(host, fmt::format("it did not end its processes within {:.3g} s", clear_limit_seconds));
}

void Agents::forget_ended() {
  std::erase_if(remotes_, [](const auto& entry) { return entry.second.status.has_value(); });
}

std::string Agents::shell_address() const {
  const std::string& all = channel_->address();
  return "127.0.0.1" + all.substr(all.rfind(':'));
}

void Agents::serve_shells(bool on) {
  shells_ = on;
  shells_printed_.clear();
}

}  // namespace assay
