// Connecting, heartbeats, and the watch on the supervisor.
#include "harness/run/worker_link.h"

#include "harness/channel/channel.h"
#include "harness/channel/connect.h"
#include "harness/core/error.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/slurm.h"
#include "harness/record/json_reader.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace assay {

namespace {

constexpr int heartbeat_ms = 2000;
constexpr std::size_t order_bytes = 1u << 20;

// No destructors, no MPI_Finalize: other ranks may never arrive there.
[[noreturn]] void end_now() {
  std::raise(SIGKILL);
  std::_Exit(4);
}

}  // namespace

RankPlace rank_place() {
  const auto number = [](std::initializer_list<const char*> variables, int otherwise) {
    const auto found = number_of(own_environment, variables);
    return found ? found->value : otherwise;
  };
  RankPlace place;
  place.rank = number({"ASSAY_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
  place.size = number({"ASSAY_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1);
  if (place.rank >= place.size) throw Error(fmt::format("rank {} in a world of {}", place.rank, place.size));
  place.local_rank =
      number({"ASSAY_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, place.rank);
  place.local_size = number({"ASSAY_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 0);
  constexpr const char* of_slurm = "SLURM_STEP_TASKS_PER_NODE";
  if (const auto tasks = own_environment(of_slurm); tasks && place.local_size == 0)
    place.local_size = parse_tasks_per_node(*tasks, of_slurm).front();
  if (place.local_size == 0) place.local_size = place.size;
  place.local_size = std::max(place.local_size, place.local_rank + 1);
  return place;
}

WorkerLink::WorkerLink(const RankPlace& place) {
  const char* address = std::getenv("ASSAY_SUPERVISOR");
  const char* token = std::getenv("ASSAY_TOKEN");
  if (!address || !token)
    throw UsageError("worker: started without a supervisor (ASSAY_SUPERVISOR, ASSAY_TOKEN); use assay run");
  fd_ = connect_to(address);
  send(hello_message("worker", token, place.rank, place.size));
  if (::pipe2(stop_pipe_, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  thread_ = std::thread([this] { listen(); });
}

WorkerLink::~WorkerLink() {
  if (thread_.joinable()) {
    (void)!::write(stop_pipe_[1], "x", 1);
    thread_.join();
  }
  for (const int fd : {fd_, stop_pipe_[0], stop_pipe_[1]})
    if (fd >= 0) ::close(fd);
}

void WorkerLink::send(const Json& message) {
  const std::lock_guard lock(send_mutex_);
  if (!send_line(fd_, message, 30.0)) end_now();
}

void WorkerLink::tell_where(std::function<void(Json& heartbeat)> where) {
  const std::lock_guard lock(where_mutex_);
  where_ = std::move(where);
}

void WorkerLink::send_heartbeat() {
  Json heartbeat = {{"type", "heartbeat"}};
  {
    const std::lock_guard lock(where_mutex_);
    if (where_) where_(heartbeat);
  }
  send(heartbeat);
}

Json WorkerLink::next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return ended_ || !orders_.empty(); });
  if (orders_.empty()) return nullptr;
  Json order = std::move(orders_.front());
  orders_.pop_front();
  return order;
}

std::string WorkerLink::shared(const std::string& name, double seconds) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return shared_.contains(name); }))
    throw Error(fmt::format("{} of rank 0 has not come within {:.3g} s", name, seconds));
  return shared_.at(name);
}

void WorkerLink::listen() {
  LineBuffer buffer(order_bytes);
  char block[65536];
  for (;;) {
    pollfd fds[2] = {{fd_, POLLIN, 0}, {stop_pipe_[0], POLLIN, 0}};
    const int ready = ::poll(fds, 2, heartbeat_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (fds[1].revents) return;
    if (ready == 0) {
      send_heartbeat();
      continue;
    }
    const ssize_t got = ::recv(fd_, block, sizeof block, 0);
    if (got < 0 && errno == EINTR) continue;
    std::vector<std::string> lines;
    if (got <= 0 || !buffer.feed({block, static_cast<std::size_t>(got)}, lines)) end_now();
    for (const std::string& line : lines) {
      Json message;
      std::string type;
      try {
        message = parse_untrusted(line);
        type = JsonReader(message, "").text("type");
      } catch (const Error& error) {
        fmt::print(stderr, "assay worker: bad order: {}\n", error.what());
        end_now();
      }
      if (type == "refused") {
        fmt::print(stderr, "assay worker: {}\n", JsonReader(message, "").text("reason"));
        std::_Exit(4);
      }
      if (type == "where") send_heartbeat();
      const std::lock_guard lock(mutex_);
      if (type == "end")
        ended_ = true;
      else if (type == "share")
        shared_[message.value("name", "")] = message.value("value", "");
      else
        orders_.push_back(std::move(message));
      arrived_.notify_all();
    }
  }
}

}  // namespace assay
