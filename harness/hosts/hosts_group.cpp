// Orders to agents, and mpirun's settings for several hosts.
#include "harness/hosts/hosts_group.h"

#include "harness/core/program.h"
#include "harness/device/settings.h"

#include <algorithm>

namespace assay {

namespace {

// The user's settings for libraries that ranks use, which a remote host's shell does not have. Which GPUs a host has,
// and what describes it in a drill, is its own matter.
bool is_setting(std::string_view name) {
  for (const char* own : {"ASSAY_HOST", "ASSAY_ROOT", "ASSAY_RSH", "CUDA_VISIBLE_DEVICES"})
    if (name == own) return false;
  if (name.starts_with("OMPI_")) return false;  // mpirun passes these itself
  for (const char* prefix : {"ASSAY_", "NCCL_", "CUDA_", "CUBLAS", "CUDNN_", "OMP_"})
    if (name.starts_with(prefix)) return true;
  return changes_figures(name);
}

}  // namespace

HostsGroup::HostsGroup(const LaunchRequest& request, Agents& agents) : agents_(agents), seats_(request.seats) {
  for (const RankSeat& seat : seats_)
    if (hosts_.empty() || std::ranges::find(hosts_, seat.host) == hosts_.end()) hosts_.push_back(seat.host);
  LaunchRequest whole = request;
  for (const auto& [name, value] : inherited_variables())
    if (is_setting(name)) whole.environment.try_emplace(name, value);
  if (request.kind == LauncherKind::mpirun) {
    start_launcher(whole);
    return;
  }
  for (const RankSeat& seat : seats_) {
    Variables own = whole.environment;
    own["ASSAY_RANK"] = std::to_string(seat.rank);
    own["ASSAY_SIZE"] = std::to_string(request.ranks);
    own["ASSAY_LOCAL_RANK"] = std::to_string(seat.local_rank);
    own["ASSAY_LOCAL_SIZE"] = std::to_string(seat.local_size);
    ids_.push_back(agents_.start(seat.host, request.subcommand, own));
  }
}

void HostsGroup::start_launcher(const LaunchRequest& request) {
  SeveralHosts several;
  for (const int host : hosts_) {
    const AllocatedHost& allocated = agents_.allocation().hosts[static_cast<std::size_t>(host)];
    const auto seats = std::ranges::count_if(seats_, [host](const RankSeat& seat) { return seat.host == host; });
    several.hosts += fmt::format("{}{}:{}", several.hosts.empty() ? "" : ",", allocated.name, seats);
    // mpirun starts the ranks of its own host itself.
    if (allocated.here) several.variables["ASSAY_HOST"] = allocated.name;
  }
  // Daemons are started through the agents, whatever launcher surrounds this process.
  const std::string shell = program_command().string() + " remote-shell";
  for (const auto& [name, value] : Variables{{"OMPI_MCA_plm", "rsh"},
                                             {"OMPI_MCA_plm_rsh_agent", shell},
                                             {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
                                             {"PRTE_MCA_plm", "ssh"},
                                             {"PRTE_MCA_plm_ssh_agent", shell},
                                             {"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
                                             {"ASSAY_AGENTS", agents_.shell_address()},
                                             {"ASSAY_AGENTS_TOKEN", agents_.token()}})
    several.variables[name] = value;
  several.one_network = agents_.one_network(hosts_);
  agents_.serve_shells(true);
  launcher_ = std::make_unique<LocalGroup>(request, several);
}

HostsGroup::~HostsGroup() {
  kill_all();
  agents_.forget_ended();
}

void HostsGroup::add_fds(std::vector<pollfd>& fds) const {
  if (launcher_) launcher_->add_fds(fds);
  agents_.add_fds(fds);
}

void HostsGroup::read() {
  if (launcher_) launcher_->read();
  agents_.read();
}

std::string HostsGroup::tail(std::size_t bytes, int rank) const {
  if (launcher_) {
    const std::string own = launcher_->tail(bytes, rank);
    return own.empty() ? tail_of(agents_.shells_printed(), bytes) : own;
  }
  if (rank >= 0 && static_cast<std::size_t>(rank) < ids_.size())
    if (const std::string own = tail_of(remote(static_cast<std::size_t>(rank)).printed, bytes); !own.empty())
      return own;
  std::string all;
  for (std::size_t i = 0; i < ids_.size(); ++i) all += remote(i).printed;
  return tail_of(all, bytes);
}

void HostsGroup::add_worker(int rank, pid_t pid) {
  const int host = seats_[static_cast<std::size_t>(rank)].host;
  if (launcher_ && agents_.allocation().hosts[static_cast<std::size_t>(host)].here) launcher_->add_worker(rank, pid);
}

bool HostsGroup::ended(int rank) const {
  if (launcher_) return launcher_->ended(rank);
  if (rank >= 0) return remote(static_cast<std::size_t>(rank)).status.has_value();
  return std::ranges::all_of(ids_, [this](int id) { return agents_.remote(id).status.has_value(); });
}

bool HostsGroup::reap() {
  if (launcher_) return launcher_->reap();
  for (std::size_t i = 0; i < ids_.size() && !first_ended_; ++i)
    if (remote(i).status) first_ended_ = static_cast<int>(i);
  return first_ended_.has_value();
}

std::optional<int> HostsGroup::first_ended() const { return launcher_ ? std::nullopt : first_ended_; }

std::optional<int> HostsGroup::wait_status(int rank) const {
  if (launcher_) return launcher_->wait_status(rank);
  const int index = rank >= 0 ? rank : first_ended_.value_or(-1);
  if (index < 0 || static_cast<std::size_t>(index) >= ids_.size()) return std::nullopt;
  return remote(static_cast<std::size_t>(index)).status;
}

bool HostsGroup::wait_end(double seconds, int rank) {
  return read_until(*this, seconds, [&] {
    reap();
    return ended(rank);
  });
}

std::optional<LostRank> HostsGroup::lost() const {
  for (const RankSeat& seat : seats_)
    if (const std::string& why = agents_.lost(seat.host); !why.empty()) return LostRank{seat.rank, why};
  return std::nullopt;
}

void HostsGroup::kill_all() {
  if (launcher_) launcher_->kill_all();
  agents_.clear(hosts_);
  agents_.serve_shells(false);
}

}  // namespace assay
