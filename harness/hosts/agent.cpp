// An agent's loop: orders, children, heartbeats.
#include "harness/hosts/agent.h"

#include "harness/channel/connect.h"
#include "harness/channel/loop.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/program.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/host_info.h"
#include "harness/json/members.h"
#include "harness/process/process.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

namespace assay {

namespace {

constexpr std::size_t order_bytes = 4u << 20;
constexpr int token_timeout_ms = 30000;
// MPI's daemons remove their files when they get SIGTERM.
constexpr double sigterm_seconds = 0.7;

// The line with "exec" before its last command, so that a signal to the shell's process reaches that command.
std::string exec_last_command(const std::string& line) {
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

class Agent : private PollSource {
 public:
  explicit Agent(const AgentRequest& request);
  ~Agent() override;
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  int run();

 private:
  struct Process : Child {
    Output output;
    bool sigterm = false;  // is ended by SIGTERM first
  };

  void send(const Message& message);
  void receive();
  void on(const message::Start& order);
  void on(const message::Stop& order);
  void on(const message::Clear& order);
  void on(const message::Clock& question);
  void on(const message::Refused& refusal);
  void on(const message::End&) { disconnected_ = released_ = true; }
  void on(const auto&) {}
  void start(const message::Start& order);
  void add_fds(std::vector<pollfd>& fds) const override;
  // Sends on what processes printed, and how they ended.
  void read() override;
  void send_output(int id, Process& process);
  void set_ended(int id, Process& process, int status);
  void end_process(const Process& process) const { process.signal_group(process.sigterm ? SIGTERM : SIGKILL); }
  // Ends every process below this one.
  void clear();

  int signal_fd_ = -1;
  std::unique_ptr<ChannelClient> client_;
  std::map<int, std::unique_ptr<Process>> processes_;
  bool disconnected_ = false;  // or told to end
  bool released_ = false;      // by the supervisor
};

Agent::Agent(const AgentRequest& request) {
  adopt_orphans();
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  const message::Host host{json_of(probe_host(request.gpus))};
  client_ = std::make_unique<ChannelClient>(request.supervisor, request.token, order_bytes, request.patience_seconds);
  message::Hello hello = hello_message("agent", request.rank, request.size);
  hello.plan = request.plan;
  send(hello);
  send(host);
}

Agent::~Agent() {
  clear();
  if (signal_fd_ >= 0) ::close(signal_fd_);
}

void Agent::send(const Message& message) {
  if (!disconnected_ && !client_->send(message, 5.0)) disconnected_ = true;
}

void Agent::start(const message::Start& order) {
  auto process = std::make_unique<Process>();
  ProcessRequest request;
  request.variables = inherited_variables();
  for (const auto& [name, value] : order.variables) request.variables[name] = value;
  request.variables["ASSAY_HOST"] = this_host();
  if (order.command) {
    request.words = {"/bin/sh", "-c", exec_last_command(*order.command)};
    process->sigterm = true;
  } else {
    request.words = {program_command().string(), order.subcommand};
  }
  request.output = process->output.writer();
  process->pid = start_process(request);
  process->output.close_writer();
  processes_[order.id] = std::move(process);
}

void Agent::on(const message::Start& order) {
  try {
    start(order);
  } catch (const Error& error) {
    send(message::Printed{order.id, std::string(error.what()) + "\n"});
    send(message::Ended{order.id, 127 << 8});
  }
}

void Agent::on(const message::Stop& order) {
  if (const auto found = processes_.find(order.id); found != processes_.end()) end_process(*found->second);
}

void Agent::on(const message::Clear& order) {
  clear();
  processes_.clear();
  send(order);
}

void Agent::on(const message::Clock& question) { send(message::Clock{question.sent, wall_clock_ns()}); }

void Agent::on(const message::Refused& refusal) {
  throw Error(fmt::format("refused by the supervisor: {}", refusal.reason));
}

void Agent::receive() {
  std::vector<Message> orders;
  if (!client_->receive(orders)) disconnected_ = true;
  for (const Message& order : orders) std::visit([this](const auto& one) { on(one); }, order);
}

void Agent::send_output(int id, Process& process) {
  if (std::string text = process.output.read(); !text.empty()) send(message::Printed{id, std::move(text)});
}

void Agent::set_ended(int id, Process& process, int status) {
  process.status = status;
  send_output(id, process);
  send(message::Ended{id, status});
}

void Agent::add_fds(std::vector<pollfd>& fds) const {
  fds.push_back({signal_fd_, POLLIN, 0});
  for (const auto& [id, process] : processes_) fds.push_back({process->output.fd(), POLLIN, 0});
}

void Agent::read() {
  signalfd_siginfo info;
  while (::read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) disconnected_ = true;
  for (auto& [id, process] : processes_) {
    send_output(id, *process);
    if (process->reap()) set_ended(id, *process, *process->status);
  }
}

void Agent::clear() {
  const auto any_left = [this](bool sigterm_only) {
    return std::ranges::any_of(processes_, [sigterm_only](const auto& entry) {
      return !entry.second->status && (entry.second->sigterm || !sigterm_only);
    });
  };
  for (const auto& [id, process] : processes_) end_process(*process);
  if (any_left(true)) read_until(*this, sigterm_seconds, [&] { return !any_left(false); });
  for (const auto& [id, process] : processes_) process->signal_group(SIGKILL);
  end_children(5.0, [this](pid_t pid, int status) {
    for (auto& [id, process] : processes_)
      if (process->pid == pid) set_ended(id, *process, status);
  });
}

int Agent::run() {
  HeartbeatTimer heartbeat;
  while (!disconnected_) {
    std::vector<pollfd> fds = {{client_->fd(), POLLIN, 0}};
    add_fds(fds);
    if (::poll(fds.data(), fds.size(), heartbeat.wait_ms()) < 0 && errno != EINTR) break;
    if (fds[0].revents) receive();
    read();
    if (heartbeat.due()) send(message::Heartbeat{});
  }
  // A message could not be sent: why the supervisor ended the connection may still be there to read.
  pollfd rest{client_->fd(), POLLIN, 0};
  if (!released_ && ::poll(&rest, 1, 0) > 0) receive();
  clear();
  return released_ ? 0 : static_cast<int>(ExitCode::broken);
}

std::string read_input_line() {
  std::string line;
  for (char c = 0;;) {
    pollfd input{0, POLLIN, 0};
    if (::poll(&input, 1, token_timeout_ms) <= 0 || ::read(0, &c, 1) != 1 || c == '\n' || line.size() > 256) break;
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
  request.token = token ? token : read_input_line();
  return request;
}

int serve_as_agent(const AgentRequest& request) { return Agent(request).run(); }

}  // namespace assay
