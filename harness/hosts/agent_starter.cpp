// Remote shells and srun steps that carry agents.
#include "harness/hosts/agent_starter.h"

#include "harness/core/error.h"
#include "harness/core/program.h"
#include "harness/core/text.h"

#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay {

namespace {

constexpr std::size_t tail_bytes = 400;

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    if (space > 0) words.emplace_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

// The address of this machine on the route to a host; empty if its name does not resolve here.
std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return {};
  std::string address;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  socklen_t length = sizeof own;
  // Sends nothing: the kernel chooses a route.
  if (fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    char text[INET_ADDRSTRLEN] = {};
    address = inet_ntop(AF_INET, &own.sin_addr, text, sizeof text) ? text : "";
  }
  if (fd >= 0) ::close(fd);
  freeaddrinfo(found);
  return address;
}

std::vector<std::string> all_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* one = list; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    if (!(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) continue;
    char text[INET_ADDRSTRLEN] = {};
    if (inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text))
      addresses.emplace_back(text);
  }
  freeifaddrs(list);
  return addresses;
}

// The reading end of a pipe that holds one line.
int pipe_with_line(const std::string& line) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe for an agent: {}", std::strerror(errno)));
  const std::string text = line + "\n";
  (void)!::write(ends[1], text.data(), text.size());
  ::close(ends[1]);
  return ends[0];
}

}  // namespace

std::vector<std::string> remote_shell_words(const Environment& environment) {
  for (const char* name : {"ASSAY_RSH", "OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "OMPI_MCA_orte_rsh_agent"})
    if (const auto value = environment(name)) {
      // Open MPI accepts several, separated by colons, and uses the first that exists.
      std::string_view rest = *value;
      while (!rest.empty()) {
        const std::size_t colon =
            name == std::string_view("ASSAY_RSH") ? rest.size() : std::min(rest.find(':'), rest.size());
        std::vector<std::string> words = split_words(rest.substr(0, colon));
        rest.remove_prefix(std::min(colon + 1, rest.size()));
        if (words.empty()) continue;
        if (!words[0].starts_with('/')) words[0] = find_program(words[0]);
        if (words[0].empty() || ::access(words[0].c_str(), X_OK) != 0) continue;
        if (words[0].ends_with("/ssh")) words.insert(words.end(), {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"});
        return words;
      }
      throw UsageError(fmt::format("{}={}: no such program", name, *value));
    }
  const std::string ssh = find_program("ssh");
  if (ssh.empty())
    throw UsageError(
        "several hosts need a remote shell: ssh is not in PATH (install openssh-client), and ASSAY_RSH "
        "names no other");
  return {ssh, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
}

std::string agent_command(const std::string& binary, const Variables& variables) {
  std::string line = "exec env";
  for (const auto& [name, value] : variables) line += fmt::format(" {}={}", name, shell_word(value));
  return line + fmt::format(" {} agent", shell_word(binary));
}

std::string addresses_towards(const std::vector<AllocatedHost>& hosts) {
  std::vector<std::string> addresses;
  const auto add = [&](const std::string& address) {
    if (!address.empty() && std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  };
  bool unknown = false;
  for (const AllocatedHost& host : hosts) {
    if (host.here) continue;
    const std::string address = address_towards(host.name);
    unknown = unknown || address.empty();
    // A loopback address would mean the other host there.
    if (!address.starts_with("127.")) add(address);
  }
  const auto here = [](const AllocatedHost& host) { return host.here; };
  const bool alone = std::ranges::all_of(hosts, here);
  if (!alone && (unknown || addresses.empty()))
    for (const std::string& address : all_addresses()) add(address);
  if (addresses.empty()) add("127.0.0.1");
  return fmt::format("{}", fmt::join(addresses, ","));
}

AgentStarter::AgentStarter(const Allocation& allocation, Variables variables, std::string token)
    : allocation_(allocation), variables_(std::move(variables)), token_(std::move(token)) {}

void AgentStarter::start_shell(std::vector<std::string> words, Variables variables, std::vector<int> hosts) {
  auto shell = std::make_unique<Shell>();
  shell->hosts = std::move(hosts);
  ProcessRequest request;
  request.words = std::move(words);
  request.variables = std::move(variables);
  request.output = shell->output.writer();
  request.input = pipe_with_line(token_);
  // SIGTERM, so that an agent, or a shell with one, can end its processes.
  request.death_signal = SIGTERM;
  try {
    shell->pid = start_process(request);
  } catch (...) {
    ::close(request.input);
    throw;
  }
  ::close(request.input);
  spare_child(shell->pid);
  shell->output.close_writer();
  shells_.push_back(std::move(shell));
}

void AgentStarter::start(const std::vector<int>& hosts) {
  // The first agents share one step and are known by their hosts' names; later ones get a step each.
  if (allocation_.source == LaunchSource::slurm && hosts.size() == allocation_.hosts.size()) return start_step(hosts);
  for (const int index : hosts) {
    const AllocatedHost& host = allocation_.hosts[static_cast<std::size_t>(index)];
    Variables own = variables_;
    own["ASSAY_HOST"] = host.name;
    own["ASSAY_RANK"] = std::to_string(index);
    if (allocation_.source == LaunchSource::slurm) {
      start_step({index});
    } else if (host.here) {
      Variables all = inherited_variables();
      for (const auto& [name, value] : own) all[name] = value;
      start_shell({program_command().string(), "agent"}, std::move(all), {index});
    } else if (!passive()) {
      std::vector<std::string> words = remote_shell_words();
      if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
      words.insert(words.end(), {host.name, agent_command(program_command().string(), own)});
      start_shell(std::move(words), inherited_variables(), {index});
    }
  }
}

void AgentStarter::start_step(const std::vector<int>& hosts) {
  const std::string srun = find_program("srun");
  if (srun.empty()) throw UsageError("a Slurm job of several nodes needs srun, which is not in PATH");
  std::string names;
  for (const int index : hosts)
    names += (names.empty() ? "" : ",") + allocation_.hosts[static_cast<std::size_t>(index)].name;
  Variables all = variables_of_launcher();
  for (const auto& [name, value] : variables_) all[name] = value;
  if (hosts.size() == 1) all["ASSAY_RANK"] = std::to_string(hosts.front());
  const std::string count = std::to_string(hosts.size());
  // --overlap: this process may be inside a step already.
  start_shell({srun, "--overlap", "--nodes", count, "--ntasks", count, "--ntasks-per-node=1", "--nodelist", names,
               "--cpu-bind=none", "--kill-on-bad-exit=0", "--export=ALL", program_command().string(), "agent"},
              std::move(all), hosts);
}

void AgentStarter::add_fds(std::vector<pollfd>& fds) const {
  for (const auto& shell : shells_)
    if (shell->output.fd() >= 0) fds.push_back({shell->output.fd(), POLLIN, 0});
}

void AgentStarter::read() {
  for (const auto& shell : shells_) {
    (void)shell->output.read();
    if (shell->reap()) (void)shell->output.read();
  }
}

std::string AgentStarter::ended(int host) const {
  // The last one that was started for it.
  for (auto shell = shells_.rbegin(); shell != shells_.rend(); ++shell) {
    const auto& hosts = (*shell)->hosts;
    if (std::ranges::find(hosts, host) == hosts.end()) continue;
    if (!(*shell)->status) return {};
    std::string text = tail_of((*shell)->output.kept(), tail_bytes);
    std::ranges::replace(text, '\n', ';');
    if (text.empty()) text = describe_status(*(*shell)->status, false);
    return text.empty() ? "its remote shell ended" : text;
  }
  return {};
}

}  // namespace assay
