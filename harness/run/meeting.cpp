// Ranks exchange the address of rank 0.
#include "harness/run/meeting.h"

#include "harness/comm/communicator.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/streams.h"
#include "harness/hosts/agent_starter.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace assay {

namespace {

constexpr int timeout_ms = 60000;
constexpr std::size_t text_bytes = 1024;
using Text = std::array<char, text_bytes>;

// Body of the child: writes the text of rank 0 into the pipe.
[[noreturn]] void gather(const Text& own, int pipe) {
  try {
    const auto comm = make_mpi_communicator();
    std::vector<char> all(text_bytes * static_cast<std::size_t>(comm->size()));
    comm->all_gather_host(own.data(), all.data(), text_bytes);
    (void)!::write(pipe, all.data(), text_bytes);
    std::exit(0);  // finalises MPI
  } catch (const std::exception& error) {
    say("assay: {}\n", error.what());
    std::_Exit(4);
  }
}

}  // namespace

std::unique_ptr<ChannelServer> meet_through_mpi(Allocation& allocation) {
  Text text{};
  std::unique_ptr<ChannelServer> server;
  if (allocation.rank == 0) {
    ChannelServer::Listen where;
    where.every_interface = allocation.hosts.size() > 1;
    where.hosts = addresses_towards(allocation.hosts);
    where.guests = true;
    where.token = random_token();
    server = std::make_unique<ChannelServer>(where);
    const std::string word = server->address() + " " + where.token;
    if (word.size() >= text_bytes) throw Error("this host has too many addresses for the ranks to meet");
    std::memcpy(text.data(), word.data(), word.size());
  }
  int ends[2];
  if (::pipe(ends) != 0) throw Error(fmt::format("no pipe for the meeting of ranks: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    gather(text, ends[1]);
  }
  ::close(ends[1]);
  pollfd come{ends[0], POLLIN, 0};
  Text heard{};
  const bool met = child > 0 && ::poll(&come, 1, timeout_ms) == 1 &&
                   ::read(ends[0], heard.data(), heard.size()) == static_cast<ssize_t>(heard.size());
  ::close(ends[0]);
  if (!met && child > 0) ::kill(child, SIGKILL);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  heard.back() = '\0';
  const std::string word = heard.data();
  const std::size_t space = word.find(' ');
  if (!met || space == word.npos)
    throw UsageError(fmt::format(
        "{} ranks were started by mpirun and cannot meet through MPI: start assay run once and give it the hosts by "
        "--hostfile, or set ASSAY_SUPERVISOR=HOST:PORT (HOST is rank 0's) and one ASSAY_TOKEN for all ranks",
        allocation.size));
  allocation.supervisor = word.substr(0, space);
  allocation.token = word.substr(space + 1);
  allocation.part = allocation.rank == 0 ? Part::supervisor : allocation.local_rank > 0 ? Part::bystander : Part::agent;
  return server;
}

}  // namespace assay
