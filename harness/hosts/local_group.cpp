// Starts and ends workers or mpirun.
#include "harness/hosts/local_group.h"

#include "harness/core/program.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace assay {

namespace {

std::vector<std::string> command_for(const LaunchRequest& request, const SeveralHosts& several) {
  std::vector<std::string> words;
  if (request.kind == LauncherKind::mpirun) {
    words = {find_program("mpirun"), "-n", std::to_string(request.ranks), "--bind-to", "none"};
    if (several.hosts.empty())
      words.push_back("--oversubscribe");
    else
      // Daemons stay attached to mpirun, so that they end with it.
      words.insert(words.end(),
                   {"--host", several.hosts, "--map-by", "slot:OVERSUBSCRIBE", "--leave-session-attached"});
    if (::geteuid() == 0) words.push_back("--allow-run-as-root");
    for (const auto& [name, value] : request.environment) words.insert(words.end(), {"-x", name});
  }
  words.insert(words.end(), {program_command().string(), request.subcommand});
  return words;
}

Variables variables_for(const LaunchRequest& request, const SeveralHosts& several, int rank) {
  Variables all = inherited_variables();
  for (const auto& [name, value] : request.environment) all[name] = value;
  if (request.kind == LauncherKind::local) {
    const std::string own = std::to_string(rank), ranks = std::to_string(request.ranks);
    for (const auto& [name, value] :
         Variables{{"ASSAY_RANK", own}, {"ASSAY_SIZE", ranks}, {"ASSAY_LOCAL_RANK", own}, {"ASSAY_LOCAL_SIZE", ranks}})
      all[name] = value;
    return all;
  }
  // Open MPI would decide by its own count of slots whether idle ranks spin or yield.
  all.try_emplace("OMPI_MCA_mpi_yield_when_idle", request.oversubscribed ? "1" : "0");
  // No back traces: the supervisor reports crashed ranks.
  all.try_emplace("OMPI_MCA_opal_signal", "");
  if ((several.hosts.empty() || several.one_network) && !all.contains("OMPI_MCA_btl_tcp_if_exclude")) {
    // Ranks need only loopback. With other interfaces too, Open MPI 5 prints a complaint per pair of ranks.
    all.try_emplace("OMPI_MCA_btl_tcp_if_include", "lo");
    // Open MPI 5 would pair interfaces by the routing table, which has no route over loopback, and connect no ranks.
    all.try_emplace("OMPI_MCA_reachable", "weighted");
  }
  // A default hostfile would be read in addition to these hosts.
  if (!several.hosts.empty()) std::erase_if(all, [](const auto& one) { return one.first.ends_with("hostfile"); });
  for (const auto& [name, value] : several.variables) all[name] = value;
  return all;
}

}  // namespace

LocalGroup::LocalGroup(const LaunchRequest& request, const SeveralHosts& several)
    : direct_(request.kind == LauncherKind::local) {
  try {
    for (int i = 0; i < (direct_ ? request.ranks : 1); ++i) start(request, several, i);
  } catch (...) {
    kill_all();
    throw;
  }
  output_.close_writer();
}

void LocalGroup::start(const LaunchRequest& request, const SeveralHosts& several, int rank) {
  ProcessRequest process;
  process.words = command_for(request, several);
  process.variables = variables_for(request, several, rank);
  process.output = output_.writer();
  // SIGTERM lets mpirun end its ranks and remove its files.
  process.death_signal = direct_ ? SIGKILL : SIGTERM;
  processes_.push_back({.pid = start_process(process)});
  // A launcher that gets SIGTERM while it is still starting may never end. The ranks die with it.
  if (!direct_) kill_when_orphaned(processes_.back().pid);
}

LocalGroup::~LocalGroup() {
  kill_all();
  for (const int worker : workers_) ::close(worker);
}

void LocalGroup::add_fds(std::vector<pollfd>& fds) const { fds.push_back({output_.fd(), POLLIN, 0}); }

void LocalGroup::read() { (void)output_.read(); }

std::string LocalGroup::tail(std::size_t bytes, int) const { return tail_of(output_.kept(), bytes); }

void LocalGroup::add_worker(int, pid_t pid) {
  if (const int fd = pidfd_open(pid); fd >= 0) workers_.push_back(fd);
}

bool LocalGroup::reap() {
  for (std::size_t i = 0; i < processes_.size(); ++i)
    if (processes_[i].reap() && !first_ended_) first_ended_ = static_cast<int>(i);
  return first_ended_.has_value();
}

bool LocalGroup::ended(int rank) const {
  if (direct_ && rank >= 0 && static_cast<std::size_t>(rank) < processes_.size())
    return processes_[static_cast<std::size_t>(rank)].status.has_value();
  return std::ranges::all_of(processes_, [](const Child& one) { return one.status.has_value(); });
}

std::optional<int> LocalGroup::wait_status(int rank) const {
  const int index = direct_ && rank >= 0 ? rank : first_ended_.value_or(-1);
  if (index < 0 || static_cast<std::size_t>(index) >= processes_.size()) return std::nullopt;
  return processes_[static_cast<std::size_t>(index)].status;
}

bool LocalGroup::wait_end(double seconds, int rank) {
  const bool done = read_until(*this, seconds, [&] {
    reap();
    return ended(rank);
  });
  if (done) read();
  return done;
}

void LocalGroup::kill_all() {
  for (const int worker : workers_) pidfd_kill(worker);
  reap();
  if (!direct_ && !ended(-1)) {
    ::kill(processes_.front().pid, SIGCONT);
    ::kill(processes_.front().pid, SIGTERM);
    wait_end(2.0);
  }
  for (const Child& process : processes_) process.signal_group(SIGKILL);
  if (!ended(-1)) wait_end(5.0);
  end_children(5.0, [this](pid_t pid, int status) {
    for (Child& process : processes_)
      if (process.pid == pid) process.status = status;
  });
}

}  // namespace assay
