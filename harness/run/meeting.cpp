// Ranks exchange the address of rank 0.
#include "harness/run/meeting.h"

#include "harness/comm/communicator.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/core/streams.h"
#include "harness/hosts/agent_starter.h"
#include "harness/process/ask.h"

#include <array>
#include <cstring>
#include <vector>

namespace assay {

namespace {

constexpr double timeout_seconds = 60;
constexpr std::size_t text_bytes = 1024;
using Text = std::array<char, text_bytes>;

// The text of rank 0.
std::string gather(const Text& own) {
  const auto comm = make_mpi_communicator();
  std::vector<char> all(text_bytes * static_cast<std::size_t>(comm->size()));
  comm->all_gather_host(own.data(), all.data(), text_bytes);
  return all.data();
}

}  // namespace

std::unique_ptr<ChannelServer> meet_through_mpi(Allocation& allocation) {
  Text text{};
  std::unique_ptr<ChannelServer> server;
  if (allocation.rank == 0) {
    ChannelServer::Listen where;
    where.other_hosts = allocation.hosts.size() > 1;
    where.hosts = addresses_towards(allocation.hosts);
    where.guests = true;
    where.token = random_token();
    server = std::make_unique<ChannelServer>(where);
    const std::string word = server->address() + " " + where.token;
    if (word.size() >= text_bytes) throw Error("this host has too many addresses for the ranks to meet");
    std::memcpy(text.data(), word.data(), word.size());
  }
  // MPI is finalised at exit.
  const ChildAnswer heard = ask_child([&] { return gather(text); }, timeout_seconds, ExitHandlers::run);
  if (heard.threw) say("assay: {}\n", heard.problem);
  const std::string word = heard.text.value_or("");
  const std::size_t space = word.find(' ');
  if (space == word.npos)
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
