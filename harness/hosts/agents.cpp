// Hellos, clocks, orders and lost hosts.
#include "harness/hosts/agents.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/open_files.h"
#include "harness/core/text.h"
#include "harness/hosts/agent_starter.h"
#include "harness/json/members.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

namespace assay {

namespace {

constexpr int clock_answers_needed = 5;
constexpr double clock_limit_seconds = 1.0;
// Once one host has failed, the others get so long to say hello.
constexpr double after_failure_seconds = 12;
constexpr double clear_limit_seconds = 8;
constexpr int killed = SIGKILL;  // as a wait status

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::vector<int> all_of(std::size_t count) {
  std::vector<int> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<int>(i));
  return all;
}

}  // namespace

Agents::Agents(Allocation allocation, AgentsOptions options)
    : allocation_(std::move(allocation)), options_(std::move(options)), loop_(make_server(), *this) {
  infos_.resize(allocation_.hosts.size());
  states_.resize(allocation_.hosts.size());
  const bool ranks_are_hosts = allocation_.source != LaunchSource::environment;
  const int size = ranks_are_hosts ? static_cast<int>(states_.size()) : allocation_.size;
  loop_.server().expect(size);
  // A host takes a connection, a pipe from its remote shell, and a guest while MPI's daemon runs there.
  reserve_open_files(3 * states_.size() + 256);
  Variables variables = {{"ASSAY_SUPERVISOR", loop_.server().address()},
                         {"ASSAY_SIZE", std::to_string(size)},
                         {"ASSAY_DEVICE", options_.device}};
  for (const char* name : {"ASSAY_HEARTBEAT_LIMIT", "ASSAY_LAUNCH_LIMIT", "ASSAY_MODULE_PATH", "ASSAY_EMULATION"})
    if (const char* value = std::getenv(name)) variables[name] = value;
  starter_ = std::make_unique<AgentStarter>(allocation_, std::move(variables), token());
  const std::vector<int> everyone = all_of(states_.size());
  starter_->start(everyone);
  if (const std::vector<Problem> problems = wait_for(everyone, [] { return false; }); !problems.empty()) {
    std::vector<std::string> names;
    for (const Problem& one : problems) names.insert(names.end(), one.hosts.begin(), one.hosts.end());
    throw HostsLost(text_of(problems, "\n"), std::move(names));
  }
  if (!ranks_are_hosts) sort_by_rank();
}

// Hosts that started their own agents are listed in the order of their hellos until then.
void Agents::sort_by_rank() {
  std::vector<int> order = all_of(states_.size());
  std::ranges::sort(order, [this](int a, int b) { return states_[at(a)].peer < states_[at(b)].peer; });
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
  for (std::size_t i = 0; i < states_.size(); ++i) send(static_cast<int>(i), message::End{});
  loop_.server().expect(0);
}

std::unique_ptr<ChannelServer> Agents::make_server() {
  own_addresses_ = addresses_towards(allocation_.hosts);
  if (options_.server) return std::move(options_.server);
  ChannelServer::Listen where;
  where.guests = true;
  const auto elsewhere = [](const AllocatedHost& host) { return !host.here; };
  where.other_hosts = std::ranges::any_of(allocation_.hosts, elsewhere);
  if (allocation_.source == LaunchSource::environment) {
    const std::size_t colon = allocation_.supervisor.rfind(':');
    own_addresses_ = allocation_.supervisor.substr(0, colon);
    where.port = std::atoi(allocation_.supervisor.c_str() + colon + 1);
    where.token = allocation_.token;
  } else {
    where.token = random_token();
  }
  where.hosts = own_addresses_;
  return std::make_unique<ChannelServer>(where);
}

std::string Agents::text_of(const std::vector<Problem>& problems, const char* between) {
  std::string text;
  for (const Problem& one : problems) text += (text.empty() ? "" : between) + one.text;
  return text;
}

void Agents::on_refused(const message::Refused& refusal) {
  Problem& problem = refused_[refusal.rank] = {{}, refusal.reason};
  if (at(refusal.rank) < states_.size()) problem.hosts = {name_of_host(refusal.rank)};
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
  return std::ranges::all_of(hosts, [&](int host) {
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

std::optional<std::string> Agents::library_path_finding() const {
  std::map<std::string, std::vector<std::string>> names;  // by path
  for (const HostInfo& host : infos_) names[host.library_path].push_back(host.name);
  if (names.size() < 2) return std::nullopt;
  std::vector<std::string> groups;
  for (const auto& [path, hosts] : names)
    groups.push_back(fmt::format("{} on {}", path.empty() ? "none" : path, first_few(hosts, 1)));
  return fmt::format("LD_LIBRARY_PATH differs between hosts: {}", fmt::join(groups, "; "));
}

std::vector<Agents::Problem> Agents::problems_of(const std::vector<int>& hosts) const {
  std::vector<Problem> problems;
  for (const auto& [rank, refusal] : refused_) problems.push_back(refusal);
  for (const int host : hosts) {
    if (states_[at(host)].ready || refused_.contains(host)) continue;
    if (const std::string words = starter_->ended(host); !words.empty())
      problems.push_back(
          {{name_of_host(host)}, fmt::format("host {} cannot be reached: {}", name_of_host(host), words)});
  }
  return problems;
}

std::vector<Agents::Problem> Agents::wait_for(const std::vector<int>& hosts, const std::function<bool()>& stop) {
  refused_.clear();
  const auto ready = [this](int host) { return states_[at(host)].ready; };
  const auto begin = Clock::now();
  std::optional<Clock::time_point> first_failure;
  const auto since = [](Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); };
  read_until(*this, options_.start_limit_seconds, [&] {
    const std::size_t problems = problems_of(hosts).size();
    if (problems > 0 && !first_failure) first_failure = Clock::now();
    const auto arrived = static_cast<std::size_t>(std::ranges::count_if(hosts, ready));
    return arrived + problems >= hosts.size() || (first_failure && since(*first_failure) > after_failure_seconds) ||
           stop();
  });
  std::vector<Problem> problems = problems_of(hosts);
  std::vector<std::string> missing;
  for (const int host : hosts)
    if (!ready(host) && !refused_.contains(host) && starter_->ended(host).empty())
      missing.push_back(name_of_host(host));
  if (problems.empty() && !missing.empty()) {
    std::string text = fmt::format("host {} has not answered within {:.3g} s", fmt::join(missing, ", "), since(begin));
    if (starter_->passive())
      text += fmt::format(": it must run the same command with ASSAY_SUPERVISOR={} and the same ASSAY_TOKEN",
                          allocation_.supervisor);
    problems.push_back({std::move(missing), std::move(text)});
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
  std::vector<Problem> problems;
  try {
    starter_->start(silent);
    problems = wait_for(gone, stop);
  } catch (const Error& error) {
    problems = {{{}, error.what()}};
  }
  std::erase_if(gone, [this](int host) { return states_[at(host)].ready; });
  if (gone.empty()) return true;
  if (stop()) return false;
  for (const int host : gone) {
    State& state = states_[at(host)];
    const std::vector<Problem> own = problems_of({host});
    state.given_up = true;
    state.lost += "; " + text_of(own.empty() ? problems : own, "; ");
    note(fmt::format("{}; the run continues without it", state.lost));
  }
  return false;
}

void Agents::add_fds(std::vector<pollfd>& fds) const {
  loop_.add_fds(fds);
  starter_->add_fds(fds);
}

void Agents::read() {
  loop_.round(0, {starter_.get()});
  if (!heartbeat_.due()) return;
  for (std::size_t i = 0; i < states_.size(); ++i) send(static_cast<int>(i), message::Heartbeat{});
}

void Agents::note(const std::string& line) {
  if (options_.note) options_.note(line);
}

bool Agents::send(int host, const Message& message) {
  const int peer = states_[at(host)].peer;
  return peer >= 0 && loop_.server().send(peer, message);
}

int Agents::host_at(int peer) const {
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (states_[i].peer == peer) return static_cast<int>(i);
  return -1;
}

void Agents::on_silent(int peer, double seconds) {
  if (const int host = host_at(peer); host >= 0) lose(host, fmt::format("no heartbeat for {:.3g} s", seconds));
}

void Agents::on_closed(int peer) {
  if (const int host = host_at(peer); host >= 0) return lose(host, "its agent ended");
  const auto guest = guests_.find(peer);
  if (guest == guests_.end()) return;
  const int id = guest->second;
  guests_.erase(guest);
  if (!remotes_[id].status) send(remotes_[id].host, message::Stop{id});
}

// Agents say their number, except under srun, where they are known by name, and where hosts start their own agents:
// there a name not seen before is the next host's.
int Agents::host_of(int peer, const message::Hello& hello) const {
  if (allocation_.source != LaunchSource::slurm && allocation_.source != LaunchSource::environment)
    return at(peer) < states_.size() ? peer : -1;
  const int host = host_named(hello.host).value_or(-1);
  if (host >= 0 || allocation_.source == LaunchSource::slurm) return host;
  const auto nameless =
      std::ranges::find_if(allocation_.hosts, [](const AllocatedHost& one) { return one.name.empty(); });
  return nameless == allocation_.hosts.end() ? -1 : static_cast<int>(nameless - allocation_.hosts.begin());
}

void Agents::on_hello(int peer, const message::Hello& hello) {
  if (hello.role != "agent") return;
  const int host = host_of(peer, hello);
  const std::string name = one_line(hello.host);
  std::string why;
  if (host < 0)
    why = fmt::format("host {} is not of this run", name);
  else if (states_[at(host)].peer >= 0)
    why = fmt::format("two agents call their host {}: give them names by ASSAY_HOST", name);
  else if (!hello.plan.empty() && !options_.plan.empty() && hello.plan != options_.plan)
    why = fmt::format("plan mismatch: host {} was given {}, the supervisor {}", name, one_line(hello.plan),
                      options_.plan);
  if (!why.empty()) {
    refused_[peer] = {host < 0 ? std::vector<std::string>() : std::vector{allocation_.hosts[at(host)].name}, why};
    loop_.server().send(peer, message::Refused{why});
    loop_.server().disconnect(peer);
    return;
  }
  if (allocation_.hosts[at(host)].name.empty()) allocation_.hosts[at(host)].name = hello.host;
  // A lost host stays so until it is ready.
  State& state = states_[at(host)];
  state = State{.peer = peer, .lost = std::move(state.lost), .given_up = state.given_up};
}

void Agents::on_message(int peer, const Message& message) {
  if (const int host = host_at(peer); host >= 0)
    std::visit([&](const auto& one) { on(host, one); }, message);
  else if (const auto* request = std::get_if<message::Shell>(&message))
    on_shell(peer, *request);
}

void Agents::ask_clock(int host) { send(host, message::Clock{.sent = wall_clock_ns()}); }

void Agents::on(int host, const message::Clock& answer) {
  State& state = states_[at(host)];
  const std::int64_t round_trip = wall_clock_ns() - answer.sent;
  // The fastest answer is the most exact.
  if (state.clock_answers == 0 || round_trip < state.round_trip_ns) {
    state.round_trip_ns = round_trip;
    state.ahead_ns = answer.wall - (answer.sent + round_trip / 2);
  }
  state.ready = ++state.clock_answers >= clock_answers_needed;
  if (!state.ready) return ask_clock(host);
  if (!state.lost.empty()) note(fmt::format("host {} is back", name_of_host(host)));
  state.lost.clear();
  state.given_up = false;
}

void Agents::on(int host, const message::Host& message) {
  infos_[at(host)] = read_value<HostInfo>(message.info);
  infos_[at(host)].name = allocation_.hosts[at(host)].name;
  ask_clock(host);
}

void Agents::on(int host, const message::Clear& answer) { states_[at(host)].cleared = answer.id; }

void Agents::on(int host, const message::Ended& ended) {
  const auto remote = remotes_.find(ended.id);
  if (remote != remotes_.end() && remote->second.host == host) set_ended(ended.id, ended.status);
}

void Agents::on(int host, const message::Printed& printed) {
  const auto remote = remotes_.find(printed.id);
  if (remote == remotes_.end() || remote->second.host != host) return;
  keep_tail(remote->second.printed, printed.text);
  for (const auto& [guest, id] : guests_) {
    if (id != printed.id) continue;
    keep_tail(shells_printed_, printed.text);
    loop_.server().send(guest, printed);
  }
}

void Agents::on_shell(int guest, const message::Shell& request) {
  if (guests_.contains(guest)) return;
  const std::optional<int> host = host_named(request.target);
  std::string why;
  if (!shells_)
    why = "no daemon is expected now";
  else if (!host)
    why = fmt::format("host {} is not of this run", one_line(request.target));
  else
    why = lost(*host);
  if (!why.empty()) {
    loop_.server().send(guest, message::Printed{.text = "assay: " + why + "\n"});
    loop_.server().send(guest, message::Ended{.status = 255 << 8});
    return;
  }
  guests_[guest] = next_id_;
  start(*host, message::Start{.command = request.command});
}

int Agents::start(int host, message::Start order) {
  order.id = next_id_++;
  remotes_[order.id] = {host, {}, std::nullopt};
  if (!send(host, order)) set_ended(order.id, killed);
  return order.id;
}

int Agents::start(int host, const std::string& subcommand, const Variables& variables) {
  return start(host, message::Start{.subcommand = subcommand, .variables = variables});
}

void Agents::set_ended(int id, int status) {
  Remote& remote = remotes_[id];
  if (remote.status) return;
  remote.status = status;
  for (const auto& [guest, started] : guests_)
    if (started == id) loop_.server().send(guest, message::Ended{id, status});
}

void Agents::lose(int host, const std::string& why) {
  State& state = states_[at(host)];
  if (state.peer < 0) return;
  loop_.server().disconnect(state.peer);
  state.peer = -1;
  state.ready = false;
  const std::string words = starter_->ended(host);
  state.lost =
      fmt::format("host {} is lost: {}{}", name_of_host(host), why, words.empty() ? "" : fmt::format(" ({})", words));
  for (auto& [id, remote] : remotes_)
    if (remote.host == host) set_ended(id, killed);
}

void Agents::clear(const std::vector<int>& hosts) {
  const int order = next_id_++;
  std::set<int> waited;
  for (const int host : hosts)
    if (send(host, message::Clear{order})) waited.insert(host);
  read_until(*this, clear_limit_seconds, [&] {
    return std::ranges::all_of(
        waited, [&](int host) { return states_[at(host)].cleared >= order || states_[at(host)].peer < 0; });
  });
  // A host that cannot even end its processes is of no use.
  for (const int host : waited)
    if (states_[at(host)].cleared < order)
      lose(host, fmt::format("it did not end its processes within {:.3g} s", clear_limit_seconds));
}

void Agents::forget_ended() {
  std::erase_if(remotes_, [](const auto& entry) { return entry.second.status.has_value(); });
}

std::string Agents::shell_address() const {
  const std::string& all = loop_.server().address();
  return "127.0.0.1" + all.substr(all.rfind(':'));
}

void Agents::serve_shells(bool on) {
  shells_ = on;
  shells_printed_.clear();
}

}  // namespace assay
