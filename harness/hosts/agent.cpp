// An agent's loop: orders, children, heartbeats.
#include "harness/hosts/agent.h"

#include "harness/channel/channel.h"
#include "harness/channel/connect.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/host_info.h"
#include "harness/hosts/process.h"
#include "harness/record/json_reader.h"

#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t order_bytes = 4u << 20;
constexpr auto heartbeat_period = std::chrono::seconds(2);
constexpr int token_patience_ms = 30000;
// MPI's daemons remove their files when they are asked to end.
constexpr auto polite_period = std::chrono::milliseconds(700);

// The last command of a line is run in the shell's place, so that ending the one ends the other.
std::string in_place_of_the_shell(const std::string& line) {
  std::size_t last = 0;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == ';') {
      last = i + 1;
    } else if (std::string_view("&|()<>`\\\n").find(c) != std::string_view::npos) {
      return line;  // more than a list of commands
    }
  }
  if (line.find_first_not_of(' ', last) == line.npos) return line;
  return line.substr(0, last) + " exec " + line.substr(last);
}

class Agent {
 public:
  explicit Agent(const AgentRequest& request);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  int run();

 private:
  struct Process {
    pid_t pid = -1;
    Output output;
    bool polite = false;
    std::optional<int> status;
  };

  void say(const Json& message);
  void read_orders();
  void obey(const Json& order);
  void start(const JsonReader& order);
  void reap();
  void pass_on_output(int id, Process& process);
  // Ends every process that is left below this one.
  void clear();

  int fd_ = -1;
  int signal_fd_ = -1;
  LineBuffer lines_{order_bytes};
  std::map<int, std::unique_ptr<Process>> processes_;
  bool ended_ = false;   // no supervisor any more
  bool let_go_ = false;  // it said so
};

Agent::Agent(const AgentRequest& request) {
  adopt_orphans();
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  Json host = to_json(probe_host(request.gpus));
  host["type"] = "host";
  fd_ = connect_to(request.supervisor, request.patience_seconds);
  Json hello = hello_message("agent", request.token, request.rank, request.size);
  hello["plan"] = request.plan;
  say(hello);
  say(host);
}

Agent::~Agent() {
  clear();
  for (const int fd : {fd_, signal_fd_})
    if (fd >= 0) ::close(fd);
}

void Agent::say(const Json& message) {
  if (!ended_ && !send_line(fd_, message, 5.0)) ended_ = true;
}

void Agent::start(const JsonReader& order) {
  const int id = order.small("id", 0);
  auto process = std::make_unique<Process>();
  ProcessRequest request;
  request.variables = inherited_variables();
  const JsonReader variables = order.child("variables");
  for (const std::string& name : variables.names()) request.variables[name] = variables.text(name);
  request.variables["ASSAY_HOST"] = this_host();
  if (order.has("command")) {
    request.words = {"/bin/sh", "-c", in_place_of_the_shell(order.text("command"))};
    process->polite = true;
  } else {
    request.words = {own_binary(), order.text("subcommand")};
  }
  request.output = process->output.writer();
  process->pid = start_process(request);
  process->output.close_writer();
  processes_[id] = std::move(process);
}

void Agent::obey(const Json& message) {
  const JsonReader order(message, "");
  const std::string type = order.text("type");
  const int id = order.small("id", 0);
  if (type == "start") {
    try {
      start(order);
    } catch (const Error& error) {
      say({{"type", "output"}, {"id", id}, {"text", std::string(error.what()) + "\n"}});
      say({{"type", "ended"}, {"id", id}, {"status", 127 << 8}});
    }
  } else if (type == "stop") {
    if (const auto found = processes_.find(id); found != processes_.end() && !found->second->status)
      ::kill(-found->second->pid, found->second->polite ? SIGTERM : SIGKILL);
  } else if (type == "clear") {
    clear();
    processes_.clear();
    say({{"type", "cleared"}, {"id", id}});
  } else if (type == "clock") {
    say({{"type", "clock"}, {"sent", order.integer("sent", 0)}, {"wall", wall_clock_ns()}});
  } else if (type == "refused") {
    throw Error(fmt::format("refused by the supervisor: {}", order.text("reason")));
  } else if (type == "end") {
    ended_ = let_go_ = true;
  }
}

void Agent::read_orders() {
  char block[65536];
  const ssize_t got = ::recv(fd_, block, sizeof block, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  std::vector<std::string> lines;
  if (got <= 0 || !lines_.feed({block, static_cast<std::size_t>(got)}, lines)) {
    ended_ = true;
    return;
  }
  for (const std::string& line : lines) obey(parse_untrusted(line));
}

void Agent::pass_on_output(int id, Process& process) {
  if (std::string text = process.output.read(); !text.empty())
    say({{"type", "output"}, {"id", id}, {"text", std::move(text)}});
}

void Agent::reap() {
  for (auto& [id, process] : processes_) {
    int status = 0;
    if (process->status || ::waitpid(process->pid, &status, WNOHANG) != process->pid) continue;
    process->status = status;
    pass_on_output(id, *process);
    say({{"type", "ended"}, {"id", id}, {"status", status}});
  }
}

void Agent::clear() {
  bool polite = false;
  for (auto& [id, process] : processes_) {
    if (process->status) continue;
    ::kill(-process->pid, process->polite ? SIGTERM : SIGKILL);
    polite = polite || process->polite;
  }
  const auto until = Clock::now() + polite_period;
  const auto lives = [](const auto& entry) { return !entry.second->status; };
  while (polite && Clock::now() < until && std::any_of(processes_.begin(), processes_.end(), lives)) {
    ::poll(nullptr, 0, 5);
    reap();
  }
  for (auto& [id, process] : processes_)
    if (!process->status) ::kill(-process->pid, SIGKILL);
  end_children(5.0, [this](pid_t pid, int status) {
    for (auto& [id, process] : processes_) {
      if (process->pid != pid) continue;
      process->status = status;
      pass_on_output(id, *process);
      say({{"type", "ended"}, {"id", id}, {"status", status}});
    }
  });
}

int Agent::run() {
  auto said = Clock::now();
  while (!ended_) {
    std::vector<pollfd> fds = {{fd_, POLLIN, 0}, {signal_fd_, POLLIN, 0}};
    for (const auto& [id, process] : processes_) fds.push_back({process->output.fd(), POLLIN, 0});
    const auto next = std::chrono::duration_cast<std::chrono::milliseconds>(said + heartbeat_period - Clock::now());
    if (::poll(fds.data(), fds.size(), std::max(0, static_cast<int>(next.count()))) < 0 && errno != EINTR) break;
    if (fds[0].revents) read_orders();
    signalfd_siginfo info;
    while (::read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      if (info.ssi_signo != SIGCHLD) ended_ = true;
    for (auto& [id, process] : processes_) pass_on_output(id, *process);
    reap();
    if (Clock::now() - said >= heartbeat_period) {
      say({{"type", "heartbeat"}});
      said = Clock::now();
    }
  }
  clear();
  return let_go_ ? 0 : static_cast<int>(ExitCode::broken);
}

std::string line_of_input() {
  std::string line;
  for (char c = 0;;) {
    pollfd input{0, POLLIN, 0};
    if (::poll(&input, 1, token_patience_ms) <= 0 || ::read(0, &c, 1) != 1 || c == '\n' || line.size() > 256) break;
    line += c;
  }
  return line;
}

}  // namespace

AgentRequest agent_request_from_environment() {
  AgentRequest request;
  const char* supervisor = std::getenv("ASSAY_SUPERVISOR");
  if (!supervisor) throw UsageError("agent: started without a supervisor (ASSAY_SUPERVISOR); use assay run");
  request.supervisor = supervisor;
  if (const char* node = std::getenv("SLURMD_NODENAME")) ::setenv("ASSAY_HOST", node, 0);
  if (const auto rank = number_of(own_environment, {"ASSAY_RANK", "SLURM_PROCID"})) request.rank = rank->value;
  if (const auto size = number_of(own_environment, {"ASSAY_SIZE", "SLURM_NTASKS"})) request.size = size->value;
  const char* token = std::getenv("ASSAY_TOKEN");
  request.token = token ? token : line_of_input();
  return request;
}

int serve_as_agent(const AgentRequest& request) { return Agent(request).run(); }

}  // namespace assay
